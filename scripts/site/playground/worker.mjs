// The worker of the playground: runs one program, and then what a button asks for. It ends with the page's answer; a program that never ends is ended with its worker.
import { ENTRIES } from './entries.mjs'
import { show } from './show.mjs'

// program.mjs is a bundle of its own before this one: names at the top of a bundle change those of parameters within, which graphs show.
const { programOf } = globalThis.playgroundProgram
const { compile, torch } = ENTRIES.tensorfx
const { explain } = ENTRIES['tensorfx/compile']
const { GraphModule } = ENTRIES['tensorfx/fx']
const { compareBackends, minifyBackendFailure, serveWorker, setLogSink, workerHelper } = ENTRIES['tensorfx/debug']
const { reportPage, trace } = ENTRIES['tensorfx/debug/trace']
const { ShapeProp } = ENTRIES['tensorfx/fx/passes']
const { graphPage } = ENTRIES['tensorfx/fx/viewer']
const { Module } = ENTRIES['tensorfx/nn']

const say = (text, level = 'log') => self.postMessage({ kind: 'print', level, text })

/** What a program may import. */
function entry(name) {
  const found = ENTRIES[name]
  if (found !== undefined) return found
  // Groups of operators export nothing, and all of them are here.
  if (name.startsWith('tensorfx/ops/')) return {}
  throw new Error(
    name.startsWith('node:')
      ? `This program imports ${name}, which only Node has. Run it in Node.`
      : name.startsWith('tensorfx/')
        ? `${name} does not run in the playground, only in Node or a page of your own.`
        : `The playground has no package ${name}; programs here import tensorfx and its entry points.`,
  )
}

const errorText = (error) => (error instanceof Error ? `${error.name}: ${error.message}${linesOf(error)}` : show(error))

/** The frames of the program in a stack. */
function linesOf({ stack = '' }) {
  const lines = [...new Set(stack.split('\n').flatMap((line) => /playground\.ts:(\d+)/.exec(line)?.[1] ?? []))]
  return lines.length === 0 ? '' : `\n  at line ${lines.slice(0, 4).join(', called from line ')}`
}

/** Runs a program, and returns what it declares at its top. */
async function run(source) {
  let declared = {}
  // oxlint-disable-next-line no-eval -- to run the user's program is what this worker is for
  const program = (0, eval)(programOf(source))
  await program(entry, (names) => (declared = names))
  return declared
}

const isCompiled = (value) => (typeof value === 'function' || typeof value === 'object') && value !== null && typeof value.graphs === 'function'

/** The graphs that a program has, by name: those it declares, and those that compiled functions have made. */
function graphsOf(declared) {
  const own = Object.entries(declared).filter(([, value]) => value instanceof GraphModule)
  const compiled = Object.entries(declared)
    .filter(([, value]) => isCompiled(value))
    .flatMap(([name, value]) => value.graphs().map((gm, i) => [`${name}, graph ${i}`, gm]))
  return [...own, ...compiled]
}

/** The model and its inputs, which most buttons need. */
function modelOf({ model, inputs, ...others }) {
  const found = model ?? Object.values(others).findLast((value) => value instanceof Module)
  if (found === undefined || !Array.isArray(inputs))
    throw new Error(
      'This button needs a model and its inputs: write `export const model = …` (a function or a module) and `export const inputs = [ … ]` (its arguments).',
    )
  return { model: found, inputs }
}

const milliseconds = (fn) => {
  const times = []
  for (let i = 0, end = performance.now() + 300; i < 5 || (i < 200 && performance.now() < end); i++) {
    const began = performance.now()
    fn()
    times.push(performance.now() - began)
  }
  return times.sort((a, b) => a - b)[Math.floor(times.length / 2)]
}

/** All numbers of a result. */
const numbersOf = (result) =>
  (Array.isArray(result) ? result : [result]).flatMap((value) =>
    value instanceof torch.Tensor ? [...value.detach().to('float64').flatten().toArray()] : [],
  )

const largest = (a, b) => a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0)

/** What buttons do after the program has run. Each returns graphs to show beside those of the program. */
const ACTIONS = {
  run: () => [],

  compile(declared) {
    const { model, inputs } = modelOf(declared)
    const fast = compile(model)
    const [expected, got] = torch.noGrad(() => [model(...inputs), fast(...inputs)])
    const [eager, compiled] = torch.noGrad(() => [milliseconds(() => model(...inputs)), milliseconds(() => fast(...inputs))])
    say(
      `compiled: ${fast.graphs().length} graphs, ${fast.kernels().length} kernels; largest difference to eager ${largest(numbersOf(expected), numbersOf(got)).toExponential(1)}`,
    )
    say(`eager ${eager.toFixed(3)} ms, compiled ${compiled.toFixed(3)} ms: ${(eager / compiled).toFixed(1)} times as fast`)
    return fast.graphs().map((gm, i) => [`compiled, graph ${i}`, gm])
  },

  explain(declared) {
    const { model, inputs } = modelOf(declared)
    const found = explain(model)(...inputs)
    say(String(found))
    return found.graphs.map((gm, i) => [`graph ${i}`, gm])
  },

  async compare(declared) {
    const { model, inputs } = modelOf(declared)
    let captured = null
    torch.noGrad(() => compile(model, { onGraph: (gm, examples) => (captured ??= { gm: gm.deepCopy(), examples: [...examples] }) })(...inputs))
    if (captured === null) throw new Error('compile has captured no graph: the model calls no operator.')
    const { gm, examples } = captured
    say(String(await compareBackends(gm, examples, { backends: ['eager', 'inductor'] })))
    return [['compared', gm]]
  },

  async minify(declared, script) {
    const { model, inputs } = modelOf(declared)
    const { backend } = declared
    if (backend === undefined)
      throw new Error("Minify needs the backend that fails: write `export const backend = 'its name'`, or a function that is one.")
    let captured = null
    torch.noGrad(() =>
      compile(model, { backend: 'eager', onGraph: (gm, examples) => (captured ??= { gm: gm.deepCopy(), examples: [...examples] }) })(...inputs),
    )
    // A worker of a page from a disk may start only what it has made itself.
    const judge = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }))
    const small = await minifyBackendFailure(captured.gm, captured.examples, {
      backend,
      findFailure: true,
      onlyFwd: true,
      startHelper: workerHelper(() => new Worker(judge, { name: 'judge' })),
      print: (line) => say(line),
    })
    const [before, after] = [captured.gm, small.gm].map(({ graph }) => graph.nodes.length)
    say(`${before} nodes -> ${after} in ${small.queries} queries${small.isolated ? `, judged in ${small.processes} workers` : ''}`)
    say(small.gm.code)
    return [['minimal', small.gm]]
  },
}

/** The time and the results of a model on the engine of this worker, for a table of engines. */
function measured(declared) {
  const { model, inputs } = modelOf(declared)
  const fast = compile(model)
  const [expected, got] = torch.noGrad(() => [numbersOf(model(...inputs)), numbersOf(fast(...inputs))])
  const [eager, compiled] = torch.noGrad(() => [milliseconds(() => model(...inputs)), milliseconds(() => fast(...inputs))])
  return { engine: torch.backends.wasm.engine, eager, compiled, expected, got }
}

/** The kernels that were made, from the records of the run. */
const kernelsText = (records) =>
  records
    .filter(({ kind }) => kind === 'kernel')
    .map(
      ({ name, type, engine, origins, wasmBytes, text }) =>
        `// ${name}: ${type}, ${engine}, ${wasmBytes} bytes of WebAssembly, computes ${origins.join(', ')}\n${text}`,
    )
    .join('\n\n')

/** A graph with shapes, where they can be known, as a page. */
function pageOf(name, gm, declared) {
  if (Array.isArray(declared.inputs)) {
    try {
      torch.noGrad(() => new ShapeProp(gm).propagate(...declared.inputs))
    } catch {
      // Graphs of other inputs are shown without shapes.
    }
  }
  return graphPage(gm, { title: name })
}

async function answer({ source, action, relaxed, script }) {
  for (const level of ['log', 'info', 'warn', 'error', 'debug'])
    console[level] = (...values) => say(values.map((value) => show(value)).join(' '), level)
  console.table = (value) => say(show(value))
  setLogSink((text) => say(String(text), 'info'))
  if (relaxed === false) torch.backends.wasm.relaxed = false
  torch.manualSeed(0)
  const began = performance.now()
  const traced = trace()
  let [declared, graphs, error, numbers] = [{}, [], null, null]
  try {
    declared = await run(source)
    if (action === 'measure') numbers = measured(declared)
    else graphs = await ACTIONS[action](declared, script)
  } catch (thrown) {
    error = errorText(thrown)
  }
  const time = performance.now() - began
  traced.end()
  const all = [...graphsOf(declared), ...graphs]
  const records = traced.records()
  const hasCompiled = records.some(({ kind }) => kind === 'graph' || kind === 'call')
  const [shown] = all.slice(-1)
  self.postMessage({
    ...{ kind: 'done', error, time, numbers },
    graph: shown === undefined ? null : pageOf(shown[0], shown[1], declared),
    code: all.map(([name, gm]) => `// ${name}\n${gm.code.trim()}`).join('\n\n'),
    kernels: kernelsText(records),
    report: hasCompiled ? reportPage(traced, { peak: null }) : null,
    memory: torch.memory.memorySummary(),
  })
}

// A worker that judges candidates of the minifier is this program, too.
if (self.name === 'judge') {
  setLogSink(() => {})
  serveWorker()
} else {
  self.onmessage = ({ data }) => void answer(data)
  self.postMessage({ kind: 'ready' })
}
