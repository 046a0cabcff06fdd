# All unknown fields are found at once, and plugins that are not there beside them. Only the first fault was told.

longhaul check
