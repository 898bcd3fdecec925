// Reads mutants, and looks at what they do: which errors they throw, how long they take, how much memory, and whether they change anything outside of themselves.
import { formats, partsOf } from './formats.mjs'
import { Entries, MARK, CANARY } from './mutate.mjs'
import { diceOf } from './dice.mjs'

/** More time of the processor than this is a hang. A busy machine may take longer by the clock. */
export const MAX_MS = 1000
/** What reading a file may take: this, and ten times the file. */
const FREE_BYTES = 64e6
const TIMES = 10

/** The seed file and the mutant of a number: `index` of the mutants of `seed`. */
export function mutantOf(seeds, format, seed, index) {
  const dice = diceOf(seed, index)
  return formats[format].mutate(dice, dice.pick(seeds))
}

/** Memory of this process that the engine knows of. */
function memoryUsed() {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** What a file must not change: the members of the prototypes, and which files are opened. */
export class Watch {
  #prototypes
  #before
  #opened = []
  #restore = []

  constructor(api) {
    const { fx, nn, torch } = api
    const tensor = Object.getPrototypeOf(torch.ones([1]))
    this.#prototypes = [Object, Function, Array, Map, Set, String, Number, Promise, Error].map((c) => c.prototype)
    this.#prototypes.push(
      tensor,
      nn.Module.prototype,
      nn.Linear.prototype,
      nn.ReLU.prototype,
      fx.GraphModule.prototype,
      fx.Graph.prototype,
      fx.Node.prototype,
    )
    this.#before = this.#state()
    const fs = process.getBuiltinModule('node:fs')
    for (const name of ['readFileSync', 'openSync', 'existsSync', 'statSync']) {
      const original = fs[name]
      this.#restore.push(() => (fs[name] = original))
      fs[name] = (path, ...rest) => {
        if (String(path).includes(CANARY.slice(1)) || String(path).startsWith('/dev/')) this.#opened.push(String(path))
        return original(path, ...rest)
      }
    }
  }

  #state() {
    const members = this.#prototypes.map((p) => [
      p,
      Object.getPrototypeOf(p),
      ...Reflect.ownKeys(p).flatMap((key) => Object.values(Object.getOwnPropertyDescriptor(p, key) ?? {})),
    ])
    return [...members.flat(), Object.keys(globalThis).length]
  }

  /** Ends the watch over files. */
  end() {
    for (const restore of this.#restore) restore()
  }

  /** What was changed since the last call; null if nothing was. */
  changes() {
    if (Object.hasOwn(globalThis, MARK)) {
      delete globalThis[MARK]
      return 'code of the file ran'
    }
    const opened = this.#opened.splice(0)
    if (opened.length > 0) return `the file ${opened[0]} was opened`
    const now = this.#state()
    const same = now.length === this.#before.length && now.every((value, i) => Object.is(value, this.#before[i]))
    if (same) return null
    this.#before = now
    return 'a prototype was changed'
  }
}

/** Reads one file. Returns what is wrong with how it was read, null if nothing is, and whether it was accepted. */
export function judge(api, watch, format, bytes, measure = true) {
  const memory = measure ? memoryUsed() : 0
  const start = process.cpuUsage()
  let accepted = true
  let problem = null
  try {
    formats[format].read(api, bytes)
  } catch (error) {
    accepted = false
    if (!(error instanceof api.TensorfxError))
      problem = `${error?.name ?? typeof error}: ${String(error?.message ?? error)
        .split('\n')[0]
        .slice(0, 300)}`
    else if (error.code === 'TFX_INTERNAL') problem = `an internal error: ${error.message.slice(0, 300)}`
  }
  const { user, system } = process.cpuUsage(start)
  const ms = (user + system) / 1000
  problem = watch.changes() ?? problem
  if (problem === null && ms > MAX_MS) problem = `took ${Math.round(ms)} ms`
  const grown = measure ? memoryUsed() - memory : 0
  if (problem === null && grown > FREE_BYTES + TIMES * bytes.length)
    problem = `took ${Math.round(grown / 1e6)} MB for a file of ${bytes.length} bytes`
  return { problem, accepted, ms, grown }
}

/** What two findings have in common: the problem without numbers and quoted texts. */
export const kindOf = (problem) =>
  problem
    .replace(/'[^']*'|"[^"]*"|`[^`]*`/g, '_')
    .replace(/[\d.]+/g, '#')
    .slice(0, 120)

/** Reads `count` mutants. Calls `onFinding` for each that is read wrongly, and returns figures. */
export function fuzz(api, format, { count, seed, from = 0, onFinding, onProgress = () => {} }) {
  const seeds = formats[format].seeds(api)
  const watch = new Watch(api)
  for (const bytes of seeds) {
    const { problem, accepted } = judge(api, watch, format, bytes)
    if (problem !== null || !accepted) throw new Error(`a seed of ${format} is not read: ${problem ?? 'it is refused'}`)
  }
  const figures = { accepted: 0, refused: 0, findings: 0, slowest: 0, largest: 0 }
  for (let index = from; index < from + count; index++) {
    onProgress(index)
    const bytes = mutantOf(seeds, format, seed, index)
    const { problem, accepted, ms, grown } = judge(api, watch, format, bytes)
    figures[accepted ? 'accepted' : 'refused']++
    figures.slowest = Math.max(figures.slowest, ms)
    figures.largest = Math.max(figures.largest, grown)
    if (problem !== null) {
      figures.findings++
      onFinding({ format, seed, index, problem, bytes, watch })
    }
  }
  watch.end()
  return figures
}

/** A smaller file with the same problem: parts are left out as long as it stays. */
export function minimize(api, { format, problem, bytes, watch }, budget = 3000) {
  const kind = kindOf(problem)
  const tries = { left: budget }
  const fails = (candidate) => {
    if (tries.left-- <= 0) return false
    const found = judge(api, watch, format, candidate, false).problem
    return found !== null && kindOf(found) === kind
  }
  const structured = partsOf(format, bytes)
  let best = bytes
  if (structured !== null && fails(structured.build(structured.value))) {
    removeParts(structured.value, () => fails(structured.build(structured.value)))
    best = structured.build(structured.value)
  }
  for (let size = best.length >> 1; size > 0; size >>= 1) best = withoutPieces(best, size, fails)
  return best
}

/** Bytes without the pieces of a size that `fails` does not need. */
function withoutPieces(bytes, size, fails) {
  let best = bytes
  for (let at = 0; at < best.length;) {
    const candidate = Uint8Array.from([...best.subarray(0, at), ...best.subarray(at + size)])
    if (fails(candidate)) best = candidate
    else at += size
  }
  return best
}

/** Removes items and entries of a value, from the outside in, as long as `holds`. */
function removeParts(value, holds) {
  const items = Array.isArray(value) ? value : value instanceof Entries ? value.entries : []
  for (let i = items.length - 1; i >= 0; i--) {
    const [removed] = items.splice(i, 1)
    if (!holds()) items.splice(i, 0, removed)
  }
  for (const item of items) removeParts(Array.isArray(value) ? item : item[1], holds)
}
