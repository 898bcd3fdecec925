// The program of a page: shows the graph or the weights that the page was written with, and opens files that are dropped on it. In a worker, which has no document, it reads such a file.
import { byId } from './elements/dom.ts'
import { listenForFiles } from './files/files.ts'
import { serveFiles } from './files/fileWorker.ts'

if (!('document' in globalThis)) serveFiles()
else {
  const data: object = JSON.parse(byId('data', HTMLScriptElement).textContent)
  void ('weights' in data ? import('./weights/weightsMain.ts') : import('./graphMain.ts'))
  listenForFiles()
}
