// The predicate of the minifier: whether a graph, compiled by a backend, still fails in the same way. It runs for every candidate, in this process or in an
// isolated one.
import { checkArgument, checkArray, checkCount, isObject } from '../../protocol/index.ts'
import { withConfig } from '../../config.ts'
import { findBackend } from '../../dynamo/index.ts'
import type { Backend } from '../../dynamo/index.ts'
import { GraphModule } from '../../fx/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { ArgumentError, present } from '../../errors/index.ts'
import { AccuracyError } from '../closeness/accuracyError.ts'
import { describe, signatureOf } from '../common/describeError.ts'
import { isDeath, isDeathKind } from './death.ts'
import type { Compiled, Rule } from './callCheck.ts'
import { runFwdMaybeBwd } from '../runs/collect.ts'
import type { DifferenceKind } from '../closeness/differenceKind.ts'
import { formsOf } from '../runs/forms.ts'
import type { Calls } from '../runs/history.ts'
import { contained } from '../runs/isolated.ts'
import { judgeCalls } from './judgeCalls.ts'
import type { CallFinding } from './judgeCalls.ts'
import { settled } from './lateErrors.ts'
import { replayed } from './replayed.ts'
import { compareTwoModels } from './twoModels.ts'
import type { Verdict } from './twoModels.ts'

/** What counts as a failure. */
export interface FailureSpec {
  /** A registered backend's name. */
  readonly backend: string
  /**
   * `none`: the compiled graph throws; `accuracy`: floats differ beyond the float64 tolerance, or integers (unless `config.reproIgnoreNonFp`); `strict_accuracy`: the same, also
   * where there is no float64 reference, and in any way.
   */
  readonly accuracy: 'none' | 'accuracy' | 'strict_accuracy'
  /** Only errors whose text contains this count. */
  readonly checkStr: string | null
  /** Which failure counts: an error by its {@link signatureOf}, wrong numbers by their kind ('accuracy|nan'); null: any. */
  readonly signature: string | null
  /** Skip the backward. */
  readonly onlyFwd: boolean
  /**
   * Calls are made and judged as level 4 does it: with wrong numbers counts what breaks a promise of backends, which leave inputs and earlier outputs alone and give the
   * same result for the same inputs, and each call is made again on copies. Forward only. Default false; wrong numbers of several calls are always judged so.
   */
  readonly contract?: boolean
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

/**
 * Judges one graph. `earlier` are the inputs of calls that come before on the same compiled code, oldest first. Repro dumping is off inside, so that judging a failure never
 * starts another hunt.
 */
export function judge(gm: GraphModule, inputs: readonly unknown[], spec: FailureSpec, given?: string | Backend, earlier: Calls = []): Outcome {
  checkCount('judge', arguments, 5)
  checkGraphModule('judge', gm)
  checkArray('judge', 'inputs', inputs)
  checkArgument(isObject(spec), 'judge', 'spec', 'what counts as a failure', spec)
  checkArray('judge', 'earlier', earlier)
  const backend = given ?? spec.backend
  const calls = [...earlier, inputs]
  return withConfig({ reproAfter: null }, () => {
    if (spec.accuracy === 'none') return judgeErrors(gm, calls, spec, backend)
    return isByContract(spec, calls) ? judgeContract(gm, calls, spec, backend) : judgeAccuracy(gm, inputs, spec, backend)
  })
}

/**
 * Like {@link judge}, but an error that comes right after the call counts too: a rejected promise that nothing awaits, or what a callback of the next turn throws. Backends whose
 * results must be awaited can be judged.
 */
export async function judgeSettled(...[gm, inputs, spec, given, earlier]: Parameters<typeof judge>): Promise<Outcome> {
  const judged = async (backend: string | Backend | undefined): Promise<Outcome> => {
    const { result, late } = await settled(() => judge(gm, inputs, spec, backend, earlier))
    return late === null || result.status !== 'passes' ? result : ofError(late.thrown, spec)
  }
  const backend = given ?? spec.backend
  const { compileAsync } = (typeof backend === 'string' ? findBackend(backend) : backend) ?? {}
  return compileAsync === undefined ? judged(given) : replayed(compileAsync, judged)
}

const isByContract = ({ contract = false }: Pick<FailureSpec, 'contract'>, calls: Calls): boolean => contract || calls.length > 1

const PASSES: Outcome = { status: 'passes', message: 'compiled and ran' }

function judgeErrors(gm: GraphModule, calls: Calls, spec: FailureSpec, backend: string | Backend): Outcome {
  try {
    for (const inputs of calls) runFwdMaybeBwd(gm, inputs, { onlyFwd: spec.onlyFwd })
  } catch (error) {
    return { status: 'unrelated', message: `the graph fails without the backend too: ${describe(error)}` }
  }
  if (backend === 'eager') return PASSES
  try {
    if (spec.contract === true) contractOf(gm, calls, backend)
    else runForms(gm, calls, spec, backend)
  } catch (error) {
    return ofError(error, spec)
  }
  return PASSES
}

/** Makes all calls of each form. Throws what the backend throws. */
function runForms(gm: GraphModule, calls: Calls, { onlyFwd }: Pick<FailureSpec, 'onlyFwd'>, backend: string | Backend): void {
  for (const compiled of formsOf(backend, gm, calls[0] ?? [], onlyFwd)) for (const inputs of calls) runFwdMaybeBwd(compiled, inputs, { onlyFwd })
}

/** What is said of an error where the end of the process is looked for. */
export const NO_DEATH = 'an error, not the end of the process'

/** Whether an error of the backend is the failure that is looked for. */
function ofError(error: unknown, spec: FailureSpec): Outcome {
  const message = describe(error)
  const signature = signatureOf(error)
  const other = (why: string): Outcome => ({ status: 'unrelated', message: `${why}: ${message}`, signature })
  if (spec.accuracy !== 'none') return other('an error, not wrong numbers')
  if (isDeath(spec.death)) return other(NO_DEATH)
  if (spec.checkStr !== null && !message.includes(spec.checkStr)) return other(`the error does not contain '${spec.checkStr}'`)
  if (spec.checkStr === null && spec.signature !== null && signature !== spec.signature) return other('a different error')
  return { status: 'fails', message, signature }
}

function judgeAccuracy(gm: GraphModule, inputs: readonly unknown[], spec: FailureSpec, backend: string | Backend): Outcome {
  let verdict: Verdict
  try {
    verdict = compareForms(gm, inputs, spec, backend)
  } catch (error) {
    return ofError(error, spec)
  }
  const { status, reasons, kinds, error, origin } = verdict
  if (origin === 'compiled') return ofError(error, spec)
  if (status === 'different') return ofDifference(reasons, spec.accuracy === 'strict_accuracy' ? [] : kinds, spec)
  return status === 'same' ? { status: 'passes', message: 'accurate' } : { status: 'unrelated', message: reasons.join('\n') }
}

/** What the calls found; a text says why they could not be judged. */
function contractOf(gm: GraphModule, calls: Calls, backend: string | Backend): CallFinding | string | null {
  let whyNot: string | null = null
  const compile = (): Compiled => {
    const [compiled] = formsOf(backend, gm, calls[0] ?? [], true)
    return present(compiled, 'the compiled graph')
  }
  const found = contained(() => judgeCalls(gm, compile, calls, (why) => (whyNot ??= why)))
  return found ?? whyNot
}

function judgeContract(gm: GraphModule, calls: Calls, spec: FailureSpec, backend: string | Backend): Outcome {
  let found: CallFinding | string | null
  try {
    found = contractOf(gm, calls, backend)
  } catch (error) {
    return ofError(error, spec)
  }
  if (found === null) return { status: 'passes', message: 'accurate' }
  if (typeof found === 'string') return { status: 'unrelated', message: found }
  return ofDifference(reasonsOf(found), [found.finding.rule], spec)
}

/** What a finding says, and at which of several calls. */
const reasonsOf = ({ finding, call }: CallFinding): readonly string[] => [
  `${call === 0 ? '' : `At call ${call + 1}: `}${finding.message}`,
  ...finding.reasons,
]

type Numbers = Pick<FailureSpec, 'accuracy' | 'onlyFwd' | 'contract'>

/** Compares what a program would run of a backend with the graph. */
function compareForms(gm: GraphModule, inputs: readonly unknown[], { accuracy, onlyFwd }: Numbers, backend: string | Backend): Verdict {
  const isStrict = accuracy === 'strict_accuracy'
  const options = { onlyFwd, requireFp64: !isStrict, ...(isStrict ? { ignoreNonFp: false } : {}) }
  let last: Verdict | null = null
  for (const compiled of formsOf(backend, gm, inputs, onlyFwd)) {
    last = compareTwoModels(gm, compiled, inputs, options)
    // The code of the whole graph needs no backward where the pair of forward and backward graph is right.
    if (last.status !== 'not judged' || last.origin !== null) break
  }
  return present(last, 'a form of the compiled graph')
}

/** Runs a graph as {@link judge} does. Throws what the backend throws; AccuracyError for wrong numbers, and for those that could not be judged. */
export function runBackend(gm: GraphModule, inputs: readonly unknown[], spec: Numbers, backend: string, earlier: Calls = []): void {
  const calls = [...earlier, inputs]
  const isForErrors = spec.accuracy === 'none'
  if (isForErrors && spec.contract !== true) return runForms(gm, calls, spec, backend)
  if (isByContract(spec, calls)) {
    const found = contractOf(gm, calls, backend)
    if (found === null || isForErrors) return
    if (typeof found === 'string') throw new AccuracyError('The numbers could not be judged', { cause: found })
    throw new AccuracyError('Bad accuracy detected', { cause: reasonsOf(found).join('\n') })
  }
  const { status, reasons, error } = compareForms(gm, inputs, spec, backend)
  if (error !== null) throw error
  const cause = reasons.join('\n')
  if (status === 'not judged') throw new AccuracyError('The numbers could not be judged', { cause })
  if (status === 'different') throw new AccuracyError('Bad accuracy detected', { cause })
}

/** Whether wrong numbers are the failure that is looked for: where it is known in which way they are wrong, they must be wrong in this way. */
function ofDifference(reasons: readonly string[], kinds: readonly (DifferenceKind | Rule)[], spec: FailureSpec): Outcome {
  const message = ['Bad accuracy detected', ...reasons].join('\n')
  const signatures = kinds.map((kind) => `accuracy|${kind}`)
  const wanted = spec.signature
  const [first = 'accuracy'] = signatures
  if (wanted === null || !wanted.startsWith('accuracy|') || kinds.length === 0) return { status: 'fails', message, signature: first }
  if (signatures.includes(wanted)) return { status: 'fails', message, signature: wanted }
  return { status: 'unrelated', message: `wrong in another way (${kinds.join(', ')}): ${message}`, signature: first }
}

/** Checks a spec that came from a command line or another process. */
export function checkFailureSpec(spec: FailureSpec): FailureSpec {
  if (!['none', 'accuracy', 'strict_accuracy'].includes(spec.accuracy))
    throw new ArgumentError(`accuracy must be 'none', 'accuracy' or 'strict_accuracy', got '${String(spec.accuracy)}'.`)
  if (isDeath(spec.death) && !isDeathKind(spec.death))
    throw new ArgumentError(`death must be 'crash', 'hang', 'any', 'exit N' or null, got '${spec.death}'.`)
  return spec
}
