"""The atomic messages of the PADRES papers are read as they are printed, typographic quotes and all."""

from datetime import UTC, datetime

import pytest

from broker_runtime.language import (
    LanguageError,
    explain_refusal,
    parse_advertisement,
    parse_publication,
    parse_subscription,
    print_subscription,
)

# PADRES chapter 1.2.1
P = """[class, ‘STOCK’], [symbol, ‘YHOO’], [open, 25.2], [high, 43.0], 
[low, 24.5], [close, 33.0], [volume, 170300], [date, ‘12-Apr-96’]  
"""  # noqa: W291 — as printed
A = """[class, eq, ‘STOCK’], [symbol, isPresent, @STRING], [open, >, 0.0], 
[high, >, 0.0], [low, > ,0.0], [close, >, 0.0], [volume, >, 0],  
[date, isPresent, @DATE]  
"""  # noqa: W291
P1 = """[class, ‘STOCK’], [symbol, ‘YHOO’], [open, 25.25],  
[high, 43.00],[low, 24.50]  """  # noqa: W291
P2 = "[class, ‘STOCK’], [symbol, ‘IBM’], [open, 45.25]  "
P3 = "[class, ‘STOCK’], [symbol, ‘IBM’], [company, ‘IBM’] "
S = """[class, eq, ‘STOCK’], [symbol, eq, ‘YHOO’],  
[open, isPresent, @FLOAT]  """  # noqa: W291

# PADRES chapter, table 1
SUB_1 = "[class, eq, ‘sports’],[country, eq, \n‘Canada’]  "
SUB_2 = "[class, eq, ‘sports’],[country, eq, \n‘Canada’],[event, eq, ‘Olympics’] "
SUB_3 = "[class, eq, ‘sports’],[event, eq, \n‘Olympics’],[year, eq, ‘2008’]  "

NOW = datetime(2008, 8, 12, 10, tzinfo=UTC)


def test_the_stock_publication_has_values_of_every_written_type():
    assert parse_publication(P) == {
        "class": "STOCK",
        "symbol": "YHOO",
        "open": 25.2,
        "high": 43.0,
        "low": 24.5,
        "close": 33.0,
        "volume": 170300,
        "date": datetime(1996, 4, 12, tzinfo=UTC),
    }


@pytest.mark.parametrize("publication", [P, P1, P2])
def test_the_stock_advertisement_induces(publication):
    assert parse_advertisement(A).induces(parse_publication(publication))


def test_the_stock_advertisement_does_not_induce_a_publication_with_a_company():
    advertisement, publication = parse_advertisement(A), parse_publication(P3)
    assert not advertisement.induces(publication)
    assert explain_refusal(advertisement, publication) == ["the attribute company is not advertised"]


def test_the_yahoo_subscription_matches_yahoo_quotes_with_an_open_value_only():
    subscription = parse_subscription(S)
    assert [subscription.matches(parse_publication(p)) for p in (P, P1, P2, P3)] == [True, True, False, False]
    assert parse_advertisement(A).overlaps(subscription)


def test_a_footnote_mark_glued_to_an_operator_is_refused_with_the_operator_meant():
    with pytest.raises(LanguageError, match=r"unknown operator 'eq4' \(did you mean eq\?\)"):
        parse_advertisement("[class, eq4, ‘STOCK’]")


def test_all_canadian_sports_news_cover_canadian_olympic_news_but_not_all_olympic_news():
    sub_1, sub_2, sub_3 = (parse_subscription(text) for text in (SUB_1, SUB_2, SUB_3))
    assert sub_1.covers(sub_2)
    assert not sub_2.covers(sub_1)
    assert not sub_1.covers(sub_3)
    assert sub_1.overlaps(sub_3)


def test_the_traffic_jam_of_the_vehicles_is_matched_within_ten_of_my_location():
    wanted = "[class, eq, ‘traffic-jam’], [location, <, MY_LOC + 10], [dir, eq, ‘HW401W’]  "
    seen = "[class, ‘traffic-jam’], [location, MY_LOC], [dir, ‘HW401W’]  "
    subscription = parse_subscription(wanted, environment={"MY_LOC": 25})
    assert "[location,<,35]" in print_subscription(subscription)
    assert subscription.matches(parse_publication(seen, environment={"MY_LOC": 34}))
    assert not subscription.matches(parse_publication(seen, environment={"MY_LOC": 35}))


def test_the_traffic_jam_without_a_known_location_says_which_name_is_unknown():
    with pytest.raises(LanguageError, match="line 1, column 15: unknown name 'MY_LOC'"):
        parse_subscription("[location, <, MY_LOC + 10],[class,eq,'traffic-jam']")


# Workflow management with publish/subscribe, content-based routing of triggers and job statuses
def test_a_trigger_within_an_hour_of_now_is_matched():
    text = "[class, eq, trigger][appl, eq, payroll][gid,\n\n=, $x] [time, <, now+1hr] [time, >, now-1hr]"
    subscription = parse_subscription(text, now=NOW)
    trigger = {"class": "trigger", "appl": "payroll", "gid": 7}
    assert subscription.matches({**trigger, "time": NOW.replace(minute=59)})
    assert not subscription.matches({**trigger, "time": NOW.replace(hour=11)})
    assert not subscription.matches({**trigger, "time": NOW.replace(hour=9)})


@pytest.mark.parametrize(
    ("text", "publication"),
    [
        ("[class, eq, trigger] [appl, eq, payroll]", "[class,trigger],[appl,payroll],[gid,1]"),
        ("[class,eq,trigger] [appl,eq,payroll]\n[gid,=,1] [time,>=,now]",
         "[class,trigger],[appl,payroll],[gid,1],[time,now]"),
        ("[class, eq, job status] [appl,\n\neq, $y] [gid, =, $x]", "[class,'job status'],[appl,a],[gid,g]"),
        ("[class, eq, trigger], [appl, eq, $y] [gid, =, $x]\n\n[time, <, now]",
         "[class,trigger],[appl,a],[gid,g],[time,now - 1s]"),
        ("([class, =, job-status], [appl, =, payroll], [job-name, isPresent, *])",
         "[class,job-status],[appl,payroll],[job-name,jobB]"),
        ("([class,=,agent_ctl],[agent,=,agent_D])", "[class,agent_ctl],[agent,agent_D]"),
        ("[class, eq, ‘LOCAL_PIE’], \n[cluster, eq, ‘C01’]", "[class,LOCAL_PIE],[cluster,C01]"),
        ("[class, eq, ‘INVOKE’], [service, eq, ‘CalcShipping’]  ", "[class,INVOKE],[service,CalcShipping]"),
        ("[class, eq, ‘RESULT’], [service, eq, ‘CalcShipping’]  ", "[class,RESULT],[service,CalcShipping]"),
    ],
)  # fmt: skip
def test_a_subscription_of_the_papers_matches(text, publication):
    assert parse_subscription(text, now=NOW).matches(parse_publication(publication, now=NOW))


# The legs of composite subscriptions in PADRES chapter 1.2.1 and 1.7 are atomic subscriptions.
@pytest.mark.parametrize(
    ("leg", "printed"),
    [
        ("([class, eq, ‘STOCK’], [symbol, eq, ‘YHOO’], [open, <, 22.0])",
         "[class,eq,'STOCK'],[symbol,eq,'YHOO'],[open,<,22.0]"),
        ("[class, eq, ‘STOCK’], [symbol, eq, ‘MSFT’], [open, >, $X],  \n"
         "[_start_time, eq, ‘12-Aug-08’], [_end_time, eq, ‘24-Aug-08’]",
         "[class,eq,'STOCK'],[symbol,eq,'MSFT'],[open,>,$X],"
         "[_start_time,eq,'2008-08-12T00:00:00Z'],[_end_time,eq,'2008-08-24T00:00:00Z']"),
        ("([class, eq,‘sesmic’],[magnitude, >,3],[location, =,$L],[time, =,$T])",
         "[class,eq,'sesmic'],[magnitude,>,3],[location,eq,$L],[time,eq,$T]"),
        ("([class, eq,‘wave’],[height, >,10],[location, <, $L +5],[time, <,$T + 10])",
         "[class,eq,'wave'],[height,>,10],[location,<,$L + 5],[time,<,$T + 10]"),
        ("([class, eq, ‘RESULT’], [service, eq, ‘AgeCheck’], [id, eq, $X],  \n[approve, eq, ‘YES’])",
         "[class,eq,'RESULT'],[service,eq,'AgeCheck'],[id,eq,$X],[approve,eq,'YES']"),
        ("([class, eq, ‘TCPOPEN’], [dest_port, =, 21], [src_ip, eq, $X],  \n[dest_ip, eq, $y])",
         "[class,eq,'TCPOPEN'],[dest_port,eq,21],[src_ip,eq,$X],[dest_ip,eq,$y]"),
        ("([class, eq, ‘LOGIN’], [userid, eq, $U], [status, eq, ‘SUCCESS’],  \n"
         "[src_ip, eq, $S], [dest_ip, eq, $D] )",
         "[class,eq,'LOGIN'],[userid,eq,$U],[status,eq,'SUCCESS'],[src_ip,eq,$S],[dest_ip,eq,$D]"),
        ("([class, eq, ‘INVOKE’], [service, eq, $A], [time, >, $T - 10s])",
         "[class,eq,'INVOKE'],[service,eq,$A],[time,>,$T - 10s]"),
        ("([class, eq, ‘CPULOAD’], [machine_id, eq, ‘OVERLOAD’], [time, =, $T])",
         "[class,eq,'CPULOAD'],[machine_id,eq,'OVERLOAD'],[time,eq,$T]"),
    ],
)  # fmt: skip
def test_a_leg_of_a_composite_is_an_atomic_subscription(leg, printed):
    assert print_subscription(parse_subscription(leg)) == printed


def test_the_post_order_discount_is_a_publication():
    text = "[class, ‘INVOKE’],[service, ‘PostOrderDiscount’],[id, ‘aaaa’]  "
    assert parse_publication(text) == {"class": "INVOKE", "service": "PostOrderDiscount", "id": "aaaa"}


def test_a_whole_composite_is_refused_where_it_stops_being_atomic():
    text = (
        "([class, eq, ‘STOCK’], [symbol, eq, ‘YHOO’], [open, <, 22.0]) && \n"
        "    ([class, eq, ‘STOCK’], [symbol, eq, ‘MSFT’], [open, >, 31.0])     "
    )
    with pytest.raises(LanguageError, match="'&&' belongs to a composite subscription") as refused:
        parse_subscription(text)
    assert [(p.line, p.column) for p in refused.value.problems] == [(1, text.index("&&") + 1)]


def test_a_derived_publication_is_not_yet_a_publication():
    text = "[class, ‘climate-alert’],[condition, ‘tsunami’],[location, $L], [time, $T]  "
    with pytest.raises(LanguageError) as refused:
        parse_publication(text)
    assert [problem.column for problem in refused.value.problems] == [
        text.index("$L") + 1,
        text.index("$T") + 1,
    ]
