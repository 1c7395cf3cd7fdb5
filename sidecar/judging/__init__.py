"""Each request looked at: watched as it goes, judged in time, its faults counted."""
