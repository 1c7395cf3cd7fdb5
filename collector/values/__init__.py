"""What the collector reckons with: histograms, measurements, what a batch adds, figures, the state of an alert."""
