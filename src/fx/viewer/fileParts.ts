// The parts of pages with which files are opened: the button, what is shown while a file hangs over the page or is read, and messages.

export const OPEN_BUTTON =
  '<button type="button" id="open-file" title="Open a file: a graph or weights (e)">Open<span class="wide"> file</span></button><input type="file" id="file" hidden aria-label="A file to open">'

export const FILES =
  '<div id="dropping" hidden>Drop a graph (.json, .safetensors) or weights (.safetensors, .pt)</div><div id="notice" role="alert" hidden><span></span><button type="button" id="close-notice" aria-label="Close">✕</button></div>'
