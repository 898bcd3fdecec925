// The predicate of the minifier: whether a graph, compiled by a backend, still fails in the same way. It runs for every candidate, in this process or in an
// isolated one.
import { checkArgument, checkArray, isObject, valueText } from '../protocol/index.ts'
import { lookupBackend, runnable, withConfig } from '../dynamo/index.ts'
import type { Backend } from '../dynamo/index.ts'
import { GraphModule } from '../fx/index.ts'
import { checkGraphModule } from '../protocol/graphChecks.ts'
import { ArgumentError, TensorfxError } from '../errors/index.ts'
import { cloneInput, runFwdMaybeBwd, sameTwoModels } from './twoModels.ts'

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
}

/** What can happen to a candidate. `unrelated` is a failure of another kind, which must not mislead the minifier. */
export const OUTCOMES = ['fails', 'passes', 'unrelated'] as const

/** What happened. */
export interface Outcome {
  readonly status: (typeof OUTCOMES)[number]
  readonly message: string
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
    const message = describe(error)
    if (spec.checkStr !== null && !message.includes(spec.checkStr))
      return { status: 'unrelated', message: `the error does not contain '${spec.checkStr}': ${message}` }
    if (spec.checkStr === null && spec.signature !== null && signatureOf(error) !== spec.signature)
      return { status: 'unrelated', message: `a different error: ${message}` }
    return { status: 'fails', message }
  }
  return { status: 'passes', message: 'compiled and ran' }
}

function judgeAccuracy(gm: GraphModule, inputs: readonly unknown[], spec: FailureSpec, backend: string | Backend): Outcome {
  const strict = spec.accuracy === 'strict_accuracy'
  try {
    const compiled = compileWith(backend, copyOf(gm), inputs.map(cloneInput))
    const equal = sameTwoModels(gm, compiled, inputs, { onlyFwd: spec.onlyFwd, requireFp64: !strict, ignoreNonFp: !strict })
    return equal ? { status: 'passes', message: 'accurate' } : { status: 'fails', message: 'Bad accuracy detected' }
  } catch (error) {
    return { status: 'unrelated', message: describe(error) }
  }
}

const copyOf = (gm: GraphModule): GraphModule => gm.deepCopy({ shareTensors: true })

/** The error, its cause, the cause of that and so on. An error that causes itself ends the chain, and so does the hundredth. */
function causes(error: unknown): readonly unknown[] {
  const chain = new Set<unknown>([error])
  for (let inner = error; inner instanceof Error && inner.cause !== undefined && chain.size < 100;) {
    inner = inner.cause
    if (chain.has(inner)) break
    chain.add(inner)
  }
  return [...chain]
}

/** `ClassName: message` of an error and of its causes. */
export function describe(error: unknown): string {
  return causes(error)
    .map((cause) => (cause instanceof Error ? `${cause.name}: ${cause.message}` : textOf(cause)))
    .join('\ncaused by ')
}

/** A thrown value as text; converting an object may throw itself. */
function textOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    return valueText(value)
  }
}

/**
 * Two errors with the same signature count as the same bug: class and code of the innermost cause, and its first line with numbers, names and quoted parts
 * masked. (PyTorch compares texts by similarity above 0.5, so that unrelated errors can mislead the search.)
 */
export function signatureOf(error: unknown): string {
  const inner = causes(error).findLast((cause) => cause instanceof Error)
  if (inner === undefined) return textOf(error)
  const line = (inner.message.split('\n')[0] ?? '').replace(/'[^']*'|"[^"]*"|`[^`]*`/g, '_').replace(/\w*\d\w*/g, '#')
  return `${inner.name}|${inner instanceof TensorfxError ? inner.code : ''}|${line}`
}

/** Checks a spec that came from a command line or another process. */
export function checkFailureSpec(spec: FailureSpec): FailureSpec {
  if (!['none', 'accuracy', 'strict_accuracy'].includes(spec.accuracy))
    throw new ArgumentError(`accuracy must be 'none', 'accuracy' or 'strict_accuracy', got '${String(spec.accuracy)}'.`)
  return spec
}
