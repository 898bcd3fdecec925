// What a worker runs, as a text: a blob or an evaluated script imports nothing.
import { ARGS_AT, CLOSED, FLAGS_AT, MODULES_AT, MOST_ARGS, STATE, WORD } from './control.ts'

/** How many kernels a worker keeps; the caller sends a module again where one was dropped. */
const MOST_KERNELS = 1000
/** How often a worker looks at the bell before it looks at the clock. */
const LOOKS = 64

/** The function `serve(memory, buffer, index)`, which looks for jobs for ever. The protocol is in control.ts. */
export const SERVE: string = `function serve(memory, buffer, index) {
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
      kernels.set(number, new WebAssembly.Instance(new WebAssembly.Module(module), { env: { memory } }).exports)
    }
    kernel = kernels.get(number)[part]
    generation = wanted
    return true
  }
  function work() {
    for (;;) {
      const word = Atomics.load(words, ${WORD.next}), next = word & ${CLOSED}
      if (next === ${CLOSED}) return
      if (word >>> 12 !== generation && !read(word >>> 12)) continue
      if (next >= chunks) return
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
