// `tensorfx compare`: a saved graph on several backends, and the smallest graph on which the first of them differs.
import { compareBackends } from '../debug/compare/index.ts'
import type { BackendComparison } from '../debug/compare/index.ts'
import { readComparison } from '../debug/compare/folder.ts'
import { fileStore } from '../debug/files/fileStore.ts'
import { ArgumentError } from '../errors/index.ts'
import { installCompile } from '../install/compile.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { Tensor } from '../tensor/index.ts'
import { numberOf } from './line.ts'
import type { Line, Output, Result } from './line.ts'

/** Inputs that require grad where they can, for gradients. */
const differentiable = (inputs: readonly unknown[]): readonly unknown[] =>
  inputs.map((input) => (input instanceof Tensor && dtypeInfo[input.dtype].floating ? input.detach().requiresGrad_(true) : input))

/** What `--json` prints of a comparison. */
function dataOf(
  result: BackendComparison,
  small: { readonly nodes: number; readonly queries: number; readonly path: string | null } | null,
): unknown {
  const backends = [...result.culprits].map(([backend, culprit]) => ({
    backend,
    status: culprit?.kind ?? 'right',
    nodes: culprit?.nodes.map(({ name }) => name) ?? [],
    // JSON has neither NaN nor infinity.
    error: culprit === null || Number.isFinite(culprit.error) ? (culprit?.error ?? null) : String(culprit.error),
    found: culprit?.found ?? null,
    reason: culprit?.reason ?? culprit?.rule ?? null,
  }))
  return { backends, notes: result.notes, smallest: small }
}

/** Runs `tensorfx compare`. */
export async function compare(line: Line, { progress }: Output): Promise<Result> {
  const { operands, options } = line
  const [folder, second] = operands
  if (folder === undefined || second !== undefined) throw new ArgumentError(`expected one folder, got ${operands.length}.`)
  const names = options.get('--backends')?.split(',') ?? []
  if (names.length === 0) throw new ArgumentError('--backends is missing: name what to compare.')
  const tol = numberOf(line, '--tol') ?? 1e-4
  const tries = numberOf(line, '--worst-input')
  const kind = options.get('--reference') === 'eager' ? 'eager' : 'float64'
  installCompile()
  const gradients = options.has('--gradients')
  const { gm, inputs } = readComparison(fileStore(), folder)
  const search = tries === undefined ? {} : { worstInput: { tries, ...(progress === undefined ? {} : { onProgress: progress }) } }
  const result = await compareBackends(gm, gradients ? differentiable(inputs) : inputs, {
    backends: names,
    tol,
    reference: kind,
    gradients,
    ...search,
  })
  const { first } = result
  const directory = options.get('--minify')
  if (first === null || first.kind === 'not judged' || directory === undefined)
    return { text: String(result), code: first === null ? 0 : 1, data: dataOf(result, null) }
  const right = [...result.culprits].find(([, culprit]) => culprit === null)?.[0]
  const small = await result.minify(first.backend, { directory, ...(right === undefined ? {} : { against: right }) })
  const nodes = `${result.gm.graph.nodes.length} nodes -> ${small.gm.graph.nodes.length}, in ${small.queries} queries`
  return {
    text: `${String(result)}\n\n${nodes}\nWrote the repro: node ${small.path ?? ''}`,
    code: 1,
    data: dataOf(result, { nodes: small.gm.graph.nodes.length, queries: small.queries, path: small.path }),
  }
}
