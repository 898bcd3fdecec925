// What a worker runs, as a text: a blob or an evaluated script imports nothing.
import { ARGS_AT, CLOSED, FLAGS_AT, MODULES_AT, MOST_ARGS, REASON_AT, REASON_BYTES, REFUSED, STATE, WORD } from './control.ts'

/** How many kernels a worker keeps; the caller sends a module again where one was dropped. */
const MOST_KERNELS = 1000
/** How often a worker looks at the bell before it looks at the clock. */
const LOOKS = 64

/** What the text of a library begins with, and no module: a brace. */
const BRACE = 0x7b

/**
 * The function `serve(memory, buffer, index, machineCode)`, which looks for jobs for ever. The protocol is in control.ts. `machineCode` returns a function for the bytes of a library, which
 * returns the library's functions, or null where this thread cannot run them: it then takes no chunk of the job.
 */
export const SERVE: string = `function serve(memory, buffer, index, machineCode) {
  const words = new Int32Array(buffer, 0, ${FLAGS_AT / 4}), flags = new Int32Array(buffer, ${FLAGS_AT}, ${CLOSED + 1})
  const numbers = new Float64Array(buffer, ${ARGS_AT}, ${2 * MOST_ARGS}), modules = new Uint8Array(buffer, ${MODULES_AT})
  const kernels = new Map()
  let generation = -1, kernel, args, chunks, chunk, extent
  function read(wanted) {
    generation = -1
    const number = words[${WORD.kernel}], at = words[${WORD.moduleAt}], bytes = words[${WORD.moduleBytes}], part = words[${WORD.part}], count = words[${WORD.args}]
    args = []
    for (let i = 0; i < count; i++) args.push(numbers[i] + index * numbers[${MOST_ARGS} + i])
    const module = kernels.has(number) ? null : modules.slice(at, at + bytes)
    chunks = words[${WORD.chunks}]; chunk = words[${WORD.chunk}]; extent = words[${WORD.extent}]
    const word = Atomics.add(words, ${WORD.next}, 0)
    if (word >>> 12 !== wanted || (word & ${CLOSED}) === ${CLOSED}) return false
    if (module !== null) {
      if (kernels.size >= ${MOST_KERNELS}) kernels.clear()
      const exports = module[0] === ${BRACE} ? null : new WebAssembly.Instance(new WebAssembly.Module(module), { env: { memory } }).exports
      kernels.set(number, exports === null ? machineCode(module) : () => exports)
    }
    kernel = kernels.get(number)()?.[part]
    generation = wanted
    return true
  }
  function work() {
    for (;;) {
      const word = Atomics.load(words, ${WORD.next}), next = word & ${CLOSED}
      if (next === ${CLOSED}) return
      if (word >>> 12 !== generation && !read(word >>> 12)) continue
      if (next >= chunks || kernel === undefined) return
      if (Atomics.compareExchange(words, ${WORD.next}, word, word + 1) !== word) continue
      const first = next * chunk
      try {
        kernel(...args, first, Math.min(chunk, extent - first))
        Atomics.store(flags, next, generation)
      } catch { Atomics.store(words, ${WORD.failed}, (generation << 12) | (next + 1)) }
      for (;;) {
        const done = Atomics.load(words, ${WORD.done})
        if (done >>> 12 !== generation || Atomics.compareExchange(words, ${WORD.done}, done, done + 1) === done) break
      }
      if (Atomics.load(words, ${WORD.waiting}) !== 0) Atomics.notify(words, ${WORD.done})
    }
  }
  const state = ${WORD.states} + 16 * index
  for (;;) {
    const heard = Atomics.load(words, ${WORD.bell})
    Atomics.store(words, state, ${STATE.busy})
    try { work() } catch { Atomics.store(words, state, ${STATE.useless}); return }
    Atomics.store(words, state, ${STATE.ready})
    let until = -1
    for (let n = 1; Atomics.load(words, ${WORD.bell}) === heard; n++) {
      if (n % ${LOOKS} !== 0) continue
      const now = performance.now()
      if (until < 0) until = now + words[${WORD.spin}] / 1000
      else if (now > until) {
        Atomics.add(words, ${WORD.sleepers}, 1)
        Atomics.wait(words, ${WORD.bell}, heard)
        Atomics.sub(words, ${WORD.sleepers}, 1)
        until = -1
      }
    }
  }
}`

/**
 * The function `machineCode(memory, buffer)`, for threads of Node: it returns what `serve` takes. The heap must be where the calling thread has said: a library that was replaced, or that this
 * thread gets a copy of, does not know it. The first thread that cannot run a library leaves the reason in the control memory.
 */
export const MACHINE_CODE: string = `function machineCode(memory, buffer) {
  const words = new Int32Array(buffer, 0, ${FLAGS_AT / 4}), reason = new Uint8Array(buffer, ${REASON_AT}, ${REASON_BYTES})
  function refuse(error) {
    if (Atomics.compareExchange(words, ${WORD.refused}, 0, ${REFUSED.writing}) !== 0) return
    // Text is not encoded into shared memory.
    const text = new Uint8Array(${REASON_BYTES})
    words[${WORD.reasonBytes}] = new TextEncoder().encodeInto(String(error?.message ?? error), text).written
    reason.set(text)
    Atomics.store(words, ${WORD.refused}, ${REFUSED.told})
  }
  return (bytes) => {
    let functions = null, isHeap, heap = null
    try {
      const { koffi, file, names } = JSON.parse(new TextDecoder().decode(bytes))
      const library = require(koffi).load(file)
      isHeap = library.func('tfx_isHeap', 'int32_t', ['void *'])
      functions = names.map(([name, types]) => library.func(name, 'void', types))
    } catch (error) { refuse(error) }
    return () => {
      if (functions === null || memory.buffer === heap) return functions
      if (isHeap(new Uint8Array(memory.buffer)) === 1) heap = memory.buffer
      else {
        functions = null
        refuse('its library takes the heap to be at another address')
      }
      return functions
    }
  }
}`
