// The predicate of the minifier: whether a graph, compiled by a backend, still fails in the same way. It runs for every candidate, in this process or in an
// isolated one.
import { checkArgument, checkArray, isObject } from '../protocol/index.ts'
import { lookupBackend, runnable, withConfig } from '../dynamo/index.ts'
import type { Backend } from '../dynamo/index.ts'
import { GraphModule } from '../fx/index.ts'
import { checkGraphModule } from '../protocol/graphChecks.ts'
import { ArgumentError } from '../errors/index.ts'
import { describe, signatureOf } from './describeError.ts'
import { isDeath, isDeathKind } from './death.ts'
import { cloneInput, compareTwoModels, runFwdMaybeBwd } from './twoModels.ts'

/** What counts as a failure. */
export interface FailureSpec {
  /** A registered backend's name. */
  readonly backend: string
  /** `none`: the compiled graph throws; `accuracy`: floats differ beyond the float64 tolerance; `strict_accuracy`: any difference. */
  readonly accuracy: 'none' | 'accuracy' | 'strict_accuracy'
  /** Only errors whose text contains this count. */
  readonly checkStr: string | null
  /** Which error counts, from {@link signatureOf}; null: any. */
  readonly signature: string | null
  /** Skip the backward. */
  readonly onlyFwd: boolean
  /**
   * The failure ends the process, or never ends: 'crash' (a signal), 'hang', 'exit 7' (`process.exit(7)`), or 'any' if it is not known how. Only another process can
   * judge that. Default null: the failure is an error, or wrong numbers.
   */
  readonly death?: string | null
}

/** What can happen to a candidate. `unrelated` is a failure of another kind, which must not mislead the minifier, or a graph that fails without the backend. */
export const OUTCOMES = ['fails', 'passes', 'unrelated'] as const

/** What happened. */
export interface Outcome {
  readonly status: (typeof OUTCOMES)[number]
  readonly message: string
  /** What the backend's failure is told from others by ({@link signatureOf}). Absent if the backend did not fail. */
  readonly signature?: string
}

/** A backend's compiled call as a function of the inputs. */
function compileWith(backend: string | Backend, gm: GraphModule, inputs: readonly unknown[]): (...inputs: readonly unknown[]) => unknown {
  const fn = typeof backend === 'string' ? lookupBackend(backend) : backend
  return runnable(fn(gm, inputs))
}

/** Judges one graph. Repro dumping is off inside, so that judging a failure never starts another hunt. */
export function judge(gm: GraphModule, inputs: readonly unknown[], spec: FailureSpec, given?: string | Backend): Outcome {
  checkGraphModule('judge', gm)
  checkArray('judge', 'inputs', inputs)
  checkArgument(isObject(spec), 'judge', 'spec', 'what counts as a failure', spec)
  const backend = given ?? spec.backend
  return withConfig({ reproAfter: null }, () =>
    spec.accuracy === 'none' ? judgeErrors(gm, inputs, spec, backend) : judgeAccuracy(gm, inputs, spec, backend),
  )
}

function judgeErrors(gm: GraphModule, inputs: readonly unknown[], spec: FailureSpec, backend: string | Backend): Outcome {
  try {
    runFwdMaybeBwd(gm, inputs, { onlyFwd: spec.onlyFwd })
  } catch (error) {
    return { status: 'unrelated', message: `the graph fails without the backend too: ${describe(error)}` }
  }
  try {
    const examples = inputs.map(cloneInput)
    const compiled = compileWith(backend, copyOf(gm), examples)
    runFwdMaybeBwd(compiled, inputs, { onlyFwd: spec.onlyFwd })
  } catch (error) {
    return ofError(error, spec)
  }
  return { status: 'passes', message: 'compiled and ran' }
}

/** Whether an error of the backend is the failure that is looked for. */
function ofError(error: unknown, spec: FailureSpec): Outcome {
  const message = describe(error)
  const signature = signatureOf(error)
  const other = (why: string): Outcome => ({ status: 'unrelated', message: `${why}: ${message}`, signature })
  if (spec.accuracy !== 'none') return other('an error, not wrong numbers')
  if (isDeath(spec.death)) return other('an error, not the end of the process')
  if (spec.checkStr !== null && !message.includes(spec.checkStr)) return other(`the error does not contain '${spec.checkStr}'`)
  if (spec.checkStr === null && spec.signature !== null && signature !== spec.signature) return other('a different error')
  return { status: 'fails', message, signature }
}

function judgeAccuracy(gm: GraphModule, inputs: readonly unknown[], spec: FailureSpec, backend: string | Backend): Outcome {
  const strict = spec.accuracy === 'strict_accuracy'
  const options = { onlyFwd: spec.onlyFwd, requireFp64: !strict, ignoreNonFp: !strict }
  let compiled: ReturnType<typeof compileWith>
  try {
    compiled = compileWith(backend, copyOf(gm), inputs.map(cloneInput))
  } catch (error) {
    return ofError(error, spec)
  }
  try {
    const { same, reasons, error } = compareTwoModels(gm, compiled, inputs, options)
    if (error !== null) return ofError(error, spec)
    return same
      ? { status: 'passes', message: 'accurate' }
      : { status: 'fails', message: ['Bad accuracy detected', ...reasons].join('\n'), signature: 'accuracy' }
  } catch (error) {
    return { status: 'unrelated', message: describe(error) }
  }
}

const copyOf = (gm: GraphModule): GraphModule => gm.deepCopy({ shareTensors: true })

/** Checks a spec that came from a command line or another process. */
export function checkFailureSpec(spec: FailureSpec): FailureSpec {
  if (!['none', 'accuracy', 'strict_accuracy'].includes(spec.accuracy))
    throw new ArgumentError(`accuracy must be 'none', 'accuracy' or 'strict_accuracy', got '${String(spec.accuracy)}'.`)
  if (isDeath(spec.death) && !isDeathKind(spec.death))
    throw new ArgumentError(`death must be 'crash', 'hang', 'any', 'exit N' or null, got '${spec.death}'.`)
  return spec
}
