// compareBackends: the same graph, node by node, on several backends, against a reference; it names the node that a difference comes from, not those that
// inherit it.
import { ArgumentError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { checkArgument, checkArray, checkCount, checkOptions } from '../../protocol/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { getRngState, setRngState } from '../../tensor/index.ts'
import { candidatesOf } from './backends.ts'
import type { Candidate, ComparedBackend } from './backends.ts'
import { comparedOn } from './compared.ts'
import { Comparing } from './comparing.ts'
import type { Compared } from './comparing.ts'
import type { Culprit, NodeRow } from './culprit.ts'
import { gradientRows, jointOf } from './gradients.ts'
import type { GradientRow, Joint } from './gradients.ts'
import { compareJoint } from './compareJoint.ts'
import type { Failing, Found } from './compareJoint.ts'
import type { ReferenceKind } from './reference.ts'
import { checkWorstInput, worstInputOf } from './worstInput.ts'
import type { WorstInput, WorstInputOptions } from './worstInput.ts'
import { BackendComparison } from './result.ts'

/** Options of {@link compareBackends}. */
export interface CompareBackendsOptions {
  /**
   * The backends: `'eager'`, registered names (`'inductor'`, `'aot_eager'`), modules and what they export or register (`'./mine.mjs#mine'`), `'onnxruntime'` (the
   * package onnxruntime-web; `'onnxruntime:webgpu'` in a browser that has WebGPU), or functions.
   */
  readonly backends: readonly ComparedBackend[]
  /** The largest error, absolute for values up to 1 and relative above. Default 1e-4. A dtype with fewer digits has the tolerance of its rounding. */
  readonly tol?: number
  /** `'float64'` (default): each node in float64. `'eager'`: the eager kernels in the dtypes of the graph. */
  readonly reference?: ReferenceKind
  /** Also run the whole graph on backends that compile, where nodes are fused with their neighbours. Default true. */
  readonly whole?: boolean
  /** Further inputs, in sets like `inputs`: a backend is right if it is for all of them. */
  readonly moreInputs?: readonly (readonly unknown[])[]
  /** Also compare the gradients of inputs and parameters that require grad: `result.gm` is then the joint graph of forward and backward. Default false. */
  readonly gradients?: boolean
  /** Search for the inputs with the largest error, and compare them as one more set: see {@link WorstInputOptions}. Default: no search. */
  readonly worstInput?: WorstInputOptions
}

/** The options with their defaults. Throws ArgumentError for bad ones. */
function readOptions(options: CompareBackendsOptions) {
  checkOptions('compareBackends', options, {
    backends: true,
    tol: 'number',
    reference: true,
    whole: 'boolean',
    moreInputs: true,
    gradients: 'boolean',
    worstInput: true,
  })
  const { backends, tol = 1e-4, reference = 'float64', whole = true, moreInputs = [], gradients = false, worstInput } = options
  checkArray('compareBackends', 'options.backends', backends)
  checkArray('compareBackends', 'options.moreInputs', moreInputs)
  for (const [i, set] of moreInputs.entries()) checkArray('compareBackends', `options.moreInputs[${i}]`, set)
  checkArgument(typeof tol === 'number' && tol > 0, 'compareBackends', 'options.tol', 'a positive number', tol)
  checkArgument(reference === 'float64' || reference === 'eager', 'compareBackends', 'options.reference', "'float64' or 'eager'", reference)
  if (backends.length === 0) throw new ArgumentError("compareBackends: options.backends is empty; name at least one, e.g. ['inductor'].")
  checkArgument(typeof gradients === 'boolean', 'compareBackends', 'options.gradients', 'a boolean', gradients)
  return { backends, tol, reference, whole, moreInputs, gradients, search: worstInput === undefined ? null : checkWorstInput(worstInput) }
}

/**
 * Runs a graph node by node on several backends and compares each result with a reference. Every node gets the inputs of the reference, so a node that differs is a
 * culprit, and not one that inherits a difference. Backends that compile also run the whole graph, with every intermediate value as an output (each is judged on the
 * values that the backend itself computed before it), and as it is; if only that differs, the smallest block of nodes that differs is looked for. A graph that writes to values which are read by another name is compared in
 * functional form (`result.gm`). With `gradients` the backward is compared too: `result.gm` is the joint graph, backends that compile also get its two halves, and
 * `result.gradients` has what they make of each gradient. Neither the module nor the inputs are changed.
 *
 *     const result = await compareBackends(gm, inputs, { backends: ['eager', 'inductor', 'onnxruntime'] })
 *     console.log(String(result))                    // a table of errors, and the culprits
 *     const small = await result.minify('inductor')  // the smallest graph that differs
 *
 * @throws ArgumentError for bad options, and with `gradients` for a graph without any, InvalidBackend for an unknown name, UnsupportedError if onnxruntime-web is not installed.
 */
export async function compareBackends(gm: GraphModule, inputs: readonly unknown[], options: CompareBackendsOptions): Promise<BackendComparison> {
  checkCount('compareBackends', arguments, 3)
  checkGraphModule('compareBackends', gm)
  checkArray('compareBackends', 'inputs', inputs)
  const { backends, tol, reference, whole, moreInputs, gradients, search } = readOptions(options)
  // What a program differentiates is captured first: backends get graphs of operators.
  const candidates = await candidatesOf(backends, gradients)
  const state = getRngState()
  try {
    const notes: string[] = []
    const settings = { reference, tol }
    const sets: Subject[] = []
    for (const [i, given] of [inputs, ...moreInputs].entries()) sets.push(subject(gm, given, i, sets[0]?.rows ?? [], settings, gradients))
    const joint = sets[0]?.joint ?? null
    const rows = joint === null ? [] : gradientRows(joint)
    const culprits = new Map<string, Culprit | null>()
    const failing = new Map<string, Failing>()
    const worst = new Map<string, WorstInput>()
    const [first] = sets
    for (const one of candidates) {
      let found: Found | null = null
      for (const compared of [...sets.slice(0, 1 + moreInputs.length)]) {
        // oxlint-disable-next-line no-await-in-loop -- backends share the heap; one after the other keeps memory low
        found ??= await culpritOn(one, compared, rows, { whole, notes })
      }
      const kind = found?.culprit.kind
      if (search !== null && first !== undefined && kind !== 'failed' && kind !== 'not judged') {
        // oxlint-disable-next-line no-await-in-loop -- as above
        const { inputs: values, names, error, status } = await worstInputOf(one, first, first.joint?.given ?? null, search)
        const there = names.length === 0 || status === 'ok' ? null : at(first, values, sets.length)
        if (there !== null) sets.push(there)
        // oxlint-disable-next-line no-await-in-loop -- as above
        const shown = there === null ? found : await culpritOn(one, there, rows, { whole, notes })
        worst.set(one.name, { inputs: values, names, error, status: shown?.culprit.kind ?? 'right' })
        found ??= shown
      }
      culprits.set(one.name, found?.culprit ?? null)
      if (found?.failing) failing.set(one.name, found.failing)
    }
    return new BackendComparison({ sets, culprits, failing, notes, backends: candidates, gradients: rows, worst })
  } finally {
    // Reference and backends draw the same numbers; the program draws its next one.
    setRngState(state)
  }
}

/** What is compared on one set of inputs. */
interface Subject extends Compared {
  readonly joint: Joint | null
}

function subject(
  gm: GraphModule,
  inputs: readonly unknown[],
  set: number,
  known: readonly NodeRow[],
  settings: Pick<Compared, 'reference' | 'tol'>,
  gradients: boolean,
): Subject {
  if (!gradients) return { ...comparedOn(gm, inputs, set, known, settings), joint: null }
  const joint = jointOf(gm, inputs)
  return { ...comparedOn(joint.gm, joint.inputs, set, known, settings), joint, halfOf: joint.halfOf }
}

/** The same graph on other inputs. */
function at(subject: Subject, inputs: readonly unknown[], set: number): Subject {
  const { gm, rows, reference, tol, joint, halfOf, functional } = subject
  return { ...comparedOn(gm, inputs, set, rows, { reference, tol }), joint, halfOf, functional }
}

async function culpritOn(
  one: Candidate,
  compared: Subject,
  rows: readonly GradientRow[],
  how: { readonly whole: boolean; readonly notes: string[] },
): Promise<Found | null> {
  if (compared.joint !== null) return compareJoint(one, compared, compared.joint, rows, how)
  const culprit = await new Comparing(one, compared).culprit(how.whole, how.notes)
  return culprit === null ? null : { culprit, failing: null }
}
