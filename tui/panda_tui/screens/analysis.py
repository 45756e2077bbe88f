"""What happened in the run, by its logs: an analysis in the background, its sentence, its figures."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import DataTable, OptionList, ProgressBar, Static
from textual.widgets.option_list import Option
from textual_plotext import PlotextPlot

from panda.analysis.expectations import verdict_of
from panda_tui.escaping import lines, plain
from panda_tui.figures import Bars, Chart, Lines, Table, figures_of, read_chart
from panda_tui.listing import analysis_in
from panda_tui.model import Snapshot
from panda_tui.screens.frame import ConsoleScreen


class AnalysisScreen(ConsoleScreen):
    title_ = "Analysis"
    manual = (
        "`a` has Spark analyse the logs of the run that came home, in the background: go where you like"
        " meanwhile."
        " Then the sentence, the verdict, and every figure of the report, drawn of the same numbers.\n\n"
        "A run that goes on has brought home little or nothing: stop it first, or `panda collect`.\n\n"
        "`o` opens the report in a browser, or says where it is. Runs are compared on the screen Runs."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "analyse", "analyse"),
        Binding("o", "report", "open the report"),
    ]
    CSS = """
    AnalysisScreen #sentence { height: auto; max-height: 6; padding: 0 1; }
    AnalysisScreen #progress { height: 1; padding: 0 1; display: none; }
    AnalysisScreen #progress.working { display: block; }
    AnalysisScreen #stage { width: 36; }
    AnalysisScreen OptionList { width: 24; height: 1fr; border: none; }
    AnalysisScreen PlotextPlot, AnalysisScreen #table { width: 1fr; height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[object, ...] = ()
        self._figures: list[Path] = []

    def body(self) -> ComposeResult:
        yield Static("", id="sentence")
        with Horizontal(id="progress"):
            yield Static("", id="stage")
            yield ProgressBar(total=None, show_eta=False, id="bar")
        with Horizontal():
            yield OptionList(id="figures")
            yield PlotextPlot(id="plot")
            table: DataTable[str] = DataTable(id="table", cursor_type="row")
            table.display = False
            yield table

    def on_mount(self) -> None:
        self.query_one("#figures").focus()

    def show(self, snapshot: Snapshot) -> None:
        work = self.console_app.analysis
        working = work is not None and not work.done
        self.query_one("#progress").set_class(working, "working")
        if work is not None and working:
            self.query_one("#stage", Static).update(plain(f"{work.run}: {work.stage}"))
            total = None if work.share is None else 100
            self.query_one("#bar", ProgressBar).update(total=total, progress=100 * (work.share or 0.0))
        folder = self.console_app.folder
        figures = figures_of(folder.path) if folder is not None else []
        kept = analysis_in(folder) if folder is not None else {}
        sign = (folder.id if folder else "", tuple(figures), str(kept.get("sentence")), work and work.refused)
        if sign == self._shown:
            return
        self._shown = sign
        text = "No run is watched: 1 shows the runs."
        if folder is not None:
            text = "Not analysed yet: a does it." if not kept else ""
        if kept:
            text = f"{kept.get('sentence', '')}\nverdict: {verdict_of(kept.get('summary') or {})}"
        if work is not None and work.refused and folder is not None and work.run == folder.id:
            text = f"{text}\n{work.refused}"
        self.query_one("#sentence", Static).update(lines(text.strip()))
        self._list(figures)

    def _list(self, figures: list[Path]) -> None:
        options = self.query_one("#figures", OptionList)
        options.clear_options()
        self._figures = figures
        options.add_options([Option(plain(path.stem)) for path in figures])
        if figures:
            options.highlighted = next(
                (n for n, path in enumerate(figures) if path.stem == "latency-time"), 0
            )
        else:
            self._draw_chart(Table([]), "")

    def on_option_list_option_highlighted(self, highlighted: OptionList.OptionHighlighted) -> None:
        path = self._figures[highlighted.option_index]
        try:
            chart = read_chart(path)
        except OSError as error:
            self.console_app.say(f"{path}: {error.strerror}", problem=True)
            return
        self._draw_chart(chart, path.stem)

    def _draw_chart(self, chart: Chart, title: str) -> None:
        plot, table = self.query_one(PlotextPlot), self.query_one("#table", DataTable)
        plot.display = not isinstance(chart, Table)
        table.display = isinstance(chart, Table) and bool(chart.head)
        if isinstance(chart, Table):
            table.clear(columns=True)
            for column in chart.head:
                table.add_column(column)
            table.add_rows(chart.rows)
            return
        plt = plot.plt
        plt.clear_figure()
        if isinstance(chart, Lines):
            for name, (xs, ys) in chart.series.items():
                plt.plot(xs, ys, label=name, marker="braille")
            plt.xlabel("seconds since phase 2 began")
        else:
            _draw_bars(plot, chart)
        plt.ylabel(chart.unit)
        plt.title(title)
        plot.refresh()

    def action_analyse(self) -> None:
        if self.console_app.folder is None:
            self.console_app.say("no run is watched: open one first", problem=True)
        else:
            self.console_app.analyse(self.console_app.folder)

    def action_report(self) -> None:
        folder = self.console_app.folder
        report = folder.path / "report" / "report.html" if folder is not None else None
        if report is None or not report.is_file():
            self.console_app.say("there is no report yet: a makes it", problem=True)
            return
        self.console_app.say(f"the report is {report.absolute()}")
        self.console_app.open_url(report.absolute().as_uri())


def _draw_bars(plot: PlotextPlot, chart: Bars) -> None:
    values = list(chart.values.items())
    if len(values) == 1:
        plot.plt.bar(chart.names, values[0][1])
    else:
        labels = [name for name, _ in values]
        measured = [each for _, each in values]
        plot.plt.multiple_bar(chart.names, measured, labels=labels)  # type: ignore[call-arg]
