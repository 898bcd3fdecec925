// The fuzzer: random programs, run eagerly and compiled (or traced), must mean the same.
import { judgeDebugger } from './debugger.mjs'
import { generate } from './generate.mjs'
import { countGraphs } from './graphCount.mjs'
import { judge } from './judge.mjs'
import { kindsFor } from './kinds/index.mjs'
import { textOf } from './program.mjs'
import { shrink } from './shrink.mjs'
import { withoutHistory, wrappers } from './wrappers.mjs'

/** Kinds that fail today, which the tests leave out. */
export const notYet = { compile: [], automatic: [], dynamic: [], makeFx: [], reinplace: [], aot: [] }

/** Whether a wrapper traces f, so that nothing may depend on what a trace does not see. */
const traces = (wrapper) => wrapper !== 'compile' && !hasNewShapes(wrapper)

/** Whether each call gets shapes of its own. */
export const hasNewShapes = (wrapper) => wrapper === 'automatic' || wrapper === 'dynamic'

/** The kinds of programs that a wrapper ('compile', 'automatic', 'dynamic', 'makeFx', 'aot') is made for. */
export const kindsOf = (wrapper) => kindsFor[wrapper]

/** Those that pass. */
export const passingKinds = (wrapper) => kindsOf(wrapper).filter((kind) => !notYet[wrapper].includes(kind))

/** How a program fails, to tell whether a shrunk one still fails in the same way. */
const signatureOf = (found) => (found.numeric ? 'numbers' : `${found.where.replace(/\d+/g, '#')} ${String(found.got).replace(/:.*/s, '')}`)

const differenceOrNull = (found) => (found === 'invalid' || found === 'too slow' ? null : found)

/** The graphs of the program of a seed, whose calls have other shapes each, and the most that PyTorch's rule gives. */
export function graphsOf(api, seed, { with: wrapper, kinds = kindsOf(wrapper), backend = 'inductor' }) {
  const program = generate(api, seed, kinds, { traced: false, newShapes: true })
  return countGraphs(api, program, wrapper === 'dynamic' ? { backend, dynamic: true } : { backend })
}

/** Runs one program; null if it passes, else how it fails. `onTooSlow` gets the seed of one that a driver took too long for: it is not judged. `settings`: those of the debugger that are compared with none, instead of compiled code with eager. */
export function fuzzOne(
  api,
  seed,
  { with: wrapper = 'compile', kinds = kindsOf(wrapper), backend = 'inductor', shrinking = true, settings = null, onTooSlow = () => undefined } = {},
) {
  const program = generate(api, seed, kinds, { traced: traces(wrapper), newShapes: hasNewShapes(wrapper) })
  const wrap = wrappers(api, backend)[wrapper]
  const difference = (candidate) => {
    if (settings !== null) return differenceOrNull(judgeDebugger(api, candidate, wrap, settings))
    const cut = wrapper === 'makeFx' || wrapper === 'reinplace'
    const judged = judge(api, candidate, wrap, {
      traced: traces(wrapper),
      device: backend === 'webgpu',
      ...(cut && { eager: withoutHistory(api), history: false }),
    })
    if (judged === 'too slow') onTooSlow(seed)
    return differenceOrNull(judged)
  }
  const found = difference(program)
  if (found === null) return null
  const signature = signatureOf(found)
  const small = shrinking
    ? shrink(program, (candidate) => {
        const other = difference(candidate)
        return other !== null && signatureOf(other) === signature
      })
    : program
  return { seed, kinds: program.kinds, signature, text: textOf(small), difference: difference(small) ?? found, full: textOf(program) }
}
