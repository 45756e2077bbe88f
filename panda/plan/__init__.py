"""Plans: decides what a topology means on given hosts, before anything is done."""
