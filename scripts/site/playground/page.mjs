// The page of the playground: an editor, buttons that have a worker do something with its program, and tabs with what came out. The program stands in the address, after `#`; nothing
// is sent. What an address holds runs only when a button is pressed.
import { highlight } from '../../../dist/docs/write/highlight.js'

const byId = (id) => document.getElementById(id)
const [area, colours, output, status, examples] = ['source', 'coloured', 'output', 'status', 'examples'].map(byId)
const TABS = ['output', 'graph', 'code', 'kernels', 'report', 'memory']
const ACTIONS = ['run', 'compile', 'explain', 'compare', 'minify']

// —— the editor

function paint() {
  colours.replaceChildren(
    ...highlight(area.value).map(([kind, text]) => {
      const piece = document.createElement('span')
      if (kind !== '') piece.className = `t-${kind}`
      piece.textContent = text
      return piece
    }),
    // A last line that is empty has its height.
    '\n',
  )
}

/** Replaces what is selected, so that it can be undone. */
const insert = (text) => document.execCommand('insertText', false, text)

area.addEventListener('input', () => {
  paint()
  keep()
})
area.addEventListener('scroll', () => {
  colours.scrollTop = area.scrollTop
  colours.scrollLeft = area.scrollLeft
})
area.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
    event.preventDefault()
    start('run')
  } else if (event.key === 'Enter' && !event.shiftKey) {
    event.preventDefault()
    const line = area.value.slice(area.value.lastIndexOf('\n', area.selectionStart - 1) + 1, area.selectionStart)
    insert(`\n${/^\s*/.exec(line)[0]}${/[{[(]\s*$/.test(line) ? '  ' : ''}`)
  } else if (event.key === 'Tab' && !event.shiftKey && !leavesByTab) {
    event.preventDefault()
    insert('  ')
  }
  // Escape, then Tab leaves the editor, for those who use the keyboard alone.
  leavesByTab = event.key === 'Escape'
})
let leavesByTab = false

// —— the address

const bytesOf = (text) => new TextEncoder().encode(text)
const base64 = (bytes) =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
const fromBase64 = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0))
const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer())
const packed = async (text) => base64(await through(bytesOf(text), new CompressionStream('deflate-raw')))
const unpacked = async (text) => new TextDecoder().decode(await through(fromBase64(text), new DecompressionStream('deflate-raw')))

let waiting = 0
/** Writes the program into the address, a moment after the last change. */
function keep() {
  clearTimeout(waiting)
  waiting = setTimeout(async () => history.replaceState(null, '', `#code=${await packed(area.value)}`), 250)
}

async function fromAddress() {
  const [, kind, value] = /^#(code|example)=(.*)$/.exec(decodeURIComponent(location.hash)) ?? []
  if (kind === 'code') {
    try {
      return { source: await unpacked(value), name: '' }
    } catch {
      status.textContent = 'The address holds no program.'
    }
  }
  const name = kind === 'example' ? value : Object.keys(EXAMPLES)[0]
  return { source: EXAMPLES[name] ?? '', name }
}

async function open() {
  const { source, name } = await fromAddress()
  area.value = source
  examples.value = name
  paint()
}

const EXAMPLES = window.playgroundExamples
for (const [group, names] of Object.entries(Object.groupBy(Object.keys(EXAMPLES), (name) => name.slice(0, name.lastIndexOf(' · '))))) {
  const list = document.createElement('optgroup')
  list.label = group
  for (const name of names) list.append(new Option(name.slice(name.lastIndexOf(' · ') + 3), name))
  examples.append(list)
}
examples.addEventListener('change', () => {
  location.hash = `example=${encodeURIComponent(examples.value)}`
})
addEventListener('hashchange', () => void open())

// —— tabs

function showTab(name) {
  for (const tab of TABS) {
    byId(`tab-${tab}`).setAttribute('aria-selected', String(tab === name))
    byId(`panel-${tab}`).hidden = tab !== name
  }
}
for (const tab of TABS) byId(`tab-${tab}`).addEventListener('click', () => showTab(tab))

const print = (text, level) => {
  const line = document.createElement('div')
  line.className = `line-${level}`
  line.textContent = text
  output.append(line)
  // A program that prints without end fills no memory.
  if (output.childElementCount > 2000) output.firstElementChild.remove()
}

/** A page inside the page: it cannot reach this one. */
function frameIn(panel, html) {
  const frame = document.createElement('iframe')
  frame.setAttribute('sandbox', 'allow-scripts allow-downloads')
  frame.title = panel
  frame.srcdoc = html
  byId(`panel-${panel}`).replaceChildren(frame)
}

const note = (panel, text) => {
  const line = document.createElement('p')
  line.className = 'soft'
  line.textContent = text
  byId(`panel-${panel}`).replaceChildren(line)
}

function textIn(panel, text, nothing) {
  if (text === '') return note(panel, nothing)
  const pre = document.createElement('pre')
  pre.textContent = text
  byId(`panel-${panel}`).replaceChildren(pre)
}

function fill({ graph, code, kernels, report, memory }) {
  if (graph === null) note('graph', 'The program has no graph: it shows those that it declares at its top, and those of functions that it compiles.')
  else frameIn('graph', graph)
  textIn('code', code, 'The code of graphs stands here.')
  textIn('kernels', kernels, 'Nothing was compiled. Press Compile, or call compile in the program.')
  if (report === null) note('report', 'Nothing was compiled, so there is nothing to report.')
  else frameIn('report', report)
  textIn('memory', memory, '')
}

// —— running

const address = URL.createObjectURL(new Blob([window.playgroundWorker], { type: 'text/javascript' }))
let current = null

function stop(text) {
  current?.terminate()
  current = null
  for (const action of ACTIONS) byId(action).disabled = false
  byId('stop').disabled = true
  status.textContent = text
  document.body.dataset.state = 'idle'
}

/** Has a fresh worker do something with the program; resolves to its answer, or never if it is stopped. */
function ask(action, options = {}) {
  return new Promise((resolve) => {
    const worker = new Worker(address)
    current = worker
    worker.onmessage = ({ data }) => {
      if (worker !== current) return
      if (data.kind === 'ready') worker.postMessage({ source: area.value, action, ...options })
      else if (data.kind === 'print') print(data.text, data.level)
      else resolve(data)
    }
    worker.onerror = (event) => {
      print(event.message, 'error')
      stop('failed')
    }
  })
}

const largest = (a, b) => a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0)

/** Two engines, each in a worker of its own: kernels of both cannot be in one. */
async function engines() {
  const found = []
  for (const relaxed of [false, true]) {
    const { numbers, error } = await ask('measure', { relaxed })
    current.terminate()
    if (error !== null) return
    if (!found.some(({ engine }) => engine === numbers.engine)) found.push(numbers)
  }
  const [{ expected }] = found
  const row = (name, time, values) =>
    `${name.padEnd(24)}${time.toFixed(3).padStart(10)} ms   differs from eager by at most ${largest(values, expected).toExponential(1)}`
  print(
    found
      .flatMap(({ engine, eager, compiled, expected: own, got }) => [row(`eager, ${engine}`, eager, own), row(`compiled, ${engine}`, compiled, got)])
      .join('\n'),
    'log',
  )
}

async function start(action) {
  stop('')
  document.body.dataset.state = 'busy'
  for (const one of ACTIONS) byId(one).disabled = true
  byId('stop').disabled = false
  status.textContent = 'running'
  output.replaceChildren()
  showTab('output')
  // The minifier starts workers of its own.
  const answer = await ask(action, action === 'minify' ? { script: window.playgroundWorker } : {})
  if (answer.error !== null) print(answer.error, 'error')
  fill(answer)
  if (action === 'compare' && answer.error === null) await engines()
  stop(
    `${answer.error === null ? 'done' : 'failed'} in ${answer.time < 1000 ? `${answer.time.toFixed(0)} ms` : `${(answer.time / 1000).toFixed(1)} s`}`,
  )
}

for (const action of ACTIONS) byId(action).addEventListener('click', () => void start(action))
byId('stop').addEventListener('click', () => stop('stopped'))
byId('share').addEventListener('click', async () => {
  history.replaceState(null, '', `#code=${await packed(area.value)}`)
  try {
    await navigator.clipboard.writeText(location.href)
    status.textContent = 'address copied'
  } catch {
    status.textContent = 'the address above holds the program'
  }
})
showTab('output')
document.body.dataset.state = 'idle'
void open()
