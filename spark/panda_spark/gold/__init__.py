"""What happened, as tables: each function takes tables and gives one; none of them reads or writes a file."""
