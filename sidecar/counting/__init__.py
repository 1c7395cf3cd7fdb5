"""What requests add up to: series, histograms and exemplars."""
