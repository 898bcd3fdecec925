// compareBackends: the same graph, node by node, on several backends, against a reference; it names the node that a difference comes from, not those that
// inherit it.
import { ArgumentError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { checkArgument, checkArray, checkOptions } from '../../protocol/index.ts'
import { checkGraphModule } from '../../protocol/graphChecks.ts'
import { getRngState, setRngState } from '../../tensor/index.ts'
import { candidatesOf } from './backends.ts'
import type { ComparedBackend } from './backends.ts'
import { comparedOn } from './compared.ts'
import { Comparing } from './comparing.ts'
import type { ReferenceKind } from './reference.ts'
import type { Culprit } from './culprit.ts'
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
}

/**
 * Runs a graph node by node on several backends and compares each result with a reference. Every node gets the inputs of the reference, so a node that differs is a
 * culprit, and not one that inherits a difference. Backends that compile also run the whole graph, with every intermediate value as an output (each is judged on the
 * values that the backend itself computed before it), and as it is; if only that differs, the smallest block of nodes that differs is looked for. A graph that writes to values which are read by another name is compared in
 * functional form (`result.gm`). Neither the module nor the inputs are changed.
 *
 *     const result = await compareBackends(gm, inputs, { backends: ['eager', 'inductor', 'onnxruntime'] })
 *     console.log(String(result))                    // a table of errors, and the culprits
 *     const small = await result.minify('inductor')  // the smallest graph that differs
 *
 * @throws ArgumentError for bad options, InvalidBackend for an unknown name, UnsupportedError if onnxruntime-web is not installed.
 */
export async function compareBackends(gm: GraphModule, inputs: readonly unknown[], options: CompareBackendsOptions): Promise<BackendComparison> {
  checkGraphModule('compareBackends', gm)
  checkArray('compareBackends', 'inputs', inputs)
  checkOptions('compareBackends', options, { backends: true, tol: true, reference: true, whole: true, moreInputs: true })
  const { backends, tol = 1e-4, reference = 'float64', whole = true, moreInputs = [] } = options
  checkArray('compareBackends', 'options.backends', backends)
  checkArray('compareBackends', 'options.moreInputs', moreInputs)
  for (const [i, set] of moreInputs.entries()) checkArray('compareBackends', `options.moreInputs[${i}]`, set)
  checkArgument(typeof tol === 'number' && tol > 0, 'compareBackends', 'options.tol', 'a positive number', tol)
  checkArgument(reference === 'float64' || reference === 'eager', 'compareBackends', 'options.reference', "'float64' or 'eager'", reference)
  if (backends.length === 0) throw new ArgumentError("compareBackends: options.backends is empty; name at least one, e.g. ['inductor'].")
  const candidates = await candidatesOf(backends)
  const state = getRngState()
  try {
    const first = comparedOn(gm, inputs, 0, [], { reference, tol })
    const sets = [first, ...moreInputs.map((set, i) => comparedOn(gm, set, i + 1, first.rows, { reference, tol }))]
    const culprits = new Map<string, Culprit | null>()
    const notes: string[] = []
    for (const one of candidates) {
      culprits.set(one.name, null)
      for (const compared of sets) {
        // oxlint-disable-next-line no-await-in-loop -- backends share the heap; one after the other keeps memory low
        const culprit = await new Comparing(one, compared).culprit(whole, notes)
        if (culprit === null) continue
        culprits.set(one.name, culprit)
        break
      }
    }
    return new BackendComparison({ sets, culprits, notes, backends: candidates })
  } finally {
    // Reference and backends draw the same numbers; the program draws its next one.
    setRngState(state)
  }
}
