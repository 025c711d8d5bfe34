"""The viewer: a window, or a page in a browser, beside a simulation that runs in a process of its own."""
