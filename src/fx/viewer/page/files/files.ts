// Opening files in a page: by drop, and by the button. A worker reads the file; then its page takes the place of this one, at the same address.
import { htmlDocument } from '../../document.ts'
import { byId, onClick } from '../elements/dom.ts'
import type { FileAnswer, FileRequest } from './fileWorker.ts'

/** A file that takes longer to read is given up, in milliseconds. */
const PATIENCE = 120_000

/** This program and its style, for the worker and for the page of the file. */
const textOf = (selector: string): string => document.querySelector(selector)?.textContent ?? ''

/** Shows a message until it is closed, or replaced; an empty one closes it. */
function say(text: string, isError: boolean): void {
  const notice = byId('notice', HTMLElement)
  notice.hidden = text === ''
  notice.classList.toggle('error', isError)
  const words = notice.querySelector('span')
  if (words !== null) words.textContent = text
}

/** Ends what reads a file now. */
let stop: () => void = () => {}

function read(request: FileRequest): Promise<FileAnswer> {
  const address = URL.createObjectURL(new Blob([textOf('#program')], { type: 'text/javascript' }))
  const worker = new Worker(address)
  return new Promise<FileAnswer>((done) => {
    setTimeout(() => done({ error: `'${request.name}' takes too long to read.` }), PATIENCE)
    stop = () => done({ error: '' })
    worker.addEventListener('message', ({ data }: MessageEvent<FileAnswer>) => done(data))
    worker.addEventListener('error', ({ message }) => done({ error: `'${request.name}' could not be read: ${message}` }))
    worker.postMessage(request)
  }).finally(() => {
    worker.terminate()
    URL.revokeObjectURL(address)
  })
}

/** Shows a file in place of what the page shows. */
async function open(file: File): Promise<void> {
  stop()
  say(`Reading ${file.name} …`, false)
  const answer = await read({ name: file.name, file })
  if ('error' in answer) {
    // What reads the file is of no interest here.
    say(answer.error.replace(/^\w+: /, ''), true)
    return
  }
  const html = htmlDocument({ ...answer.parts, sheet: textOf('style'), script: textOf('#program') })
  // What the address says of a view is about what was shown before.
  if (location.protocol !== 'about:') history.replaceState(null, '', location.pathname + location.search)
  document.open()
  document.write(html)
  document.close()
}

/** Asks for a file. */
export function chooseFile(): void {
  byId('file', HTMLInputElement).click()
}

/** Opens files that are dropped on the page, and those that are chosen. */
export function listenForFiles(): void {
  const dropping = byId('dropping', HTMLElement)
  const holdsFile = (event: DragEvent): boolean => event.dataTransfer?.types.includes('Files') === true
  addEventListener('dragover', (event) => {
    if (!holdsFile(event)) return
    event.preventDefault()
    dropping.hidden = false
  })
  addEventListener('dragleave', (event) => {
    // Elements are left for others all the time; the window is left for nothing.
    if (event.relatedTarget === null) dropping.hidden = true
  })
  addEventListener('drop', (event) => {
    if (!holdsFile(event)) return
    event.preventDefault()
    dropping.hidden = true
    const [file] = event.dataTransfer?.files ?? []
    if (file !== undefined) void open(file)
  })
  const input = byId('file', HTMLInputElement)
  input.addEventListener('change', () => {
    const [file] = input.files ?? []
    input.value = ''
    if (file !== undefined) void open(file)
  })
  onClick('open-file', chooseFile)
  onClick('close-notice', () => {
    stop()
    say('', false)
  })
}
