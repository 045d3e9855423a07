package commit

// HeaderMarker carries the [Marker] on the last message of every commit.
const HeaderMarker = "Compactd-Marker"
