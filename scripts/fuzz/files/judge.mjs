// Reads mutants, and looks at what they do: which errors they throw, how long they take, how much memory, and whether they change anything outside of themselves.
import { getHeapStatistics } from 'node:v8'
import { formats, partsOf } from './formats.mjs'
import { Entries, MARK, CANARY } from './mutate.mjs'
import { diceOf } from './dice.mjs'

/** More time of the processor than this is a hang. A busy machine may take longer by the clock. */
export const MAX_MS = 1000
/** What reading a file may take: this, and ten times the file. */
const FREE_BYTES = 64e6
const TIMES = 10
/** Prototypes are compared after so many mutants; if one was changed, the mutants are read again, one by one. */
const BATCH = 100

/** The seed file and the mutant of a number: `index` of the mutants of `seed`. */
export function mutantOf(seeds, format, seed, index) {
  const dice = diceOf(seed, index)
  return formats[format].mutate(dice, dice.pick(seeds))
}

/** Memory of this process that the engine knows of, as process.memoryUsage() has it, which also asks the system and takes ten times as long. */
function memoryUsed() {
  const { used_heap_size: heap, external_memory: external } = getHeapStatistics()
  return heap + external
}

/** An object as it was: its prototype and its own properties. */
class Snapshot {
  constructor(object) {
    this.object = object
    this.prototype = Object.getPrototypeOf(object)
    this.properties = new Map(Reflect.ownKeys(object).map((key) => [key, Object.getOwnPropertyDescriptor(object, key)]))
  }

  isSame() {
    const { object, prototype, properties } = this
    const keys = Reflect.ownKeys(object)
    if (Object.getPrototypeOf(object) !== prototype || keys.length !== properties.size) return false
    return keys.every((key) => {
      const before = properties.get(key)
      if (before === undefined) return false
      const now = Object.getOwnPropertyDescriptor(object, key)
      return Object.keys(now).every((field) => Object.is(now[field], before[field]))
    })
  }

  /** Makes the object what it was. */
  restore() {
    const { object, prototype, properties } = this
    for (const key of Reflect.ownKeys(object)) if (!properties.has(key)) Reflect.deleteProperty(object, key)
    for (const [key, property] of properties) Reflect.defineProperty(object, key, property)
    Reflect.setPrototypeOf(object, prototype)
  }
}

/** What a file must not change: the members of the prototypes, and which files are opened. */
export class Watch {
  #prototypes
  #globals
  #opened = []
  #restore = []

  constructor(api) {
    const { fx, nn, torch } = api
    const classes = [
      Object,
      Function,
      Array,
      Map,
      Set,
      String,
      Number,
      Promise,
      Error,
      nn.Module,
      nn.Linear,
      nn.ReLU,
      fx.GraphModule,
      fx.Graph,
      fx.Node,
    ]
    this.#prototypes = [...classes.map((c) => c.prototype), Object.getPrototypeOf(torch.ones([1]))].map((object) => new Snapshot(object))
    this.#globals = Object.keys(globalThis)
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

  /** Ends the watch over files. */
  end() {
    for (const restore of this.#restore) restore()
  }

  /** Whether code ran or a file was opened since the last call: null if not. */
  effects() {
    if (Object.hasOwn(globalThis, MARK)) {
      delete globalThis[MARK]
      return 'code of the file ran'
    }
    if (this.#opened.length === 0) return null
    return `the file ${this.#opened.splice(0)[0]} was opened`
  }

  /** Whether a prototype, or the list of globals, differs from what it was: null if not. Undoes the changes. */
  changes() {
    const changed = this.#prototypes.filter((snapshot) => !snapshot.isSame())
    const added = Object.keys(globalThis).filter((name) => !this.#globals.includes(name))
    for (const snapshot of changed) snapshot.restore()
    for (const name of added) Reflect.deleteProperty(globalThis, name)
    return changed.length + added.length === 0 ? null : 'a prototype was changed'
  }
}

/**
 * Reads one file. Returns what is wrong with how it was read, null if nothing is, and whether it was accepted. `quick` leaves it to the caller to look for changed
 * prototypes, which takes longer than to read most files.
 */
export function judge(api, watch, format, bytes, { measure = true, quick = false } = {}) {
  const memory = measure ? memoryUsed() : 0
  const start = performance.now()
  const computed = quick ? null : process.cpuUsage()
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
  let ms = performance.now() - start
  if (computed !== null) {
    const { user, system } = process.cpuUsage(computed)
    ms = (user + system) / 1000
  }
  const grown = measure ? memoryUsed() - memory : 0
  problem = watch.effects() ?? (quick ? null : watch.changes()) ?? problem
  if (problem === null && ms > MAX_MS) problem = `took ${Math.round(ms)} ms`
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

/** Reads a batch of mutants: quickly, and once more with all that can be looked at where that has found anything. */
function judgeBatch(api, watch, format, mutants) {
  const quickly = mutants.map((bytes) => judge(api, watch, format, bytes, { quick: true }))
  if (watch.changes() !== null) {
    const slowly = mutants.map((bytes) => judge(api, watch, format, bytes))
    // A change that needs several mutants is at least reported.
    if (slowly.every(({ problem }) => problem === null)) slowly[0].problem = `a prototype was changed by several of ${mutants.length} mutants`
    return slowly
  }
  // Time by the clock is more than the processor's on a busy machine.
  return quickly.map((found, i) => (found.ms > MAX_MS ? judge(api, watch, format, mutants[i]) : found))
}

/**
 * Reads `count` mutants. Calls `onFinding` for each that is read wrongly, and returns figures. It pauses between batches, since what a weak reference was asked for
 * stays alive until the program yields.
 */
export async function fuzz(api, format, { count, seed, from = 0, onFinding, onProgress = () => {} }) {
  const seeds = formats[format].seeds(api)
  const watch = new Watch(api)
  for (const bytes of seeds) {
    const { problem, accepted } = judge(api, watch, format, bytes)
    if (problem !== null || !accepted) throw new Error(`a seed of ${format} is not read: ${problem ?? 'it is refused'}`)
  }
  const figures = { accepted: 0, refused: 0, findings: 0, slowest: 0, largest: 0 }
  for (let start = from; start < from + count; start += BATCH) {
    onProgress(start)
    await new Promise((resolve) => setImmediate(resolve))
    const mutants = Array.from({ length: Math.min(BATCH, from + count - start) }, (_, i) => mutantOf(seeds, format, seed, start + i))
    for (const [i, { problem, accepted, ms, grown }] of judgeBatch(api, watch, format, mutants).entries()) {
      figures[accepted ? 'accepted' : 'refused']++
      figures.slowest = Math.max(figures.slowest, ms)
      figures.largest = Math.max(figures.largest, grown)
      if (problem !== null) {
        figures.findings++
        onFinding({ format, seed, index: start + i, problem, bytes: mutants[i], watch })
      }
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
    const found = judge(api, watch, format, candidate, { measure: false }).problem
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
