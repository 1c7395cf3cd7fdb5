"""The tick: what is in the windows judged each second, told and kept."""
