// `tensorfx compare`: a saved graph on several backends, and the smallest graph on which the first of them differs.
import { compareBackends } from '../debug/compare/index.ts'
import { readComparison } from '../debug/compare/folder.ts'
import { fileStore } from '../debug/fileStore.ts'
import { ArgumentError } from '../errors/index.ts'
import { installCompile } from '../install/compile.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { Tensor } from '../tensor/index.ts'
import type { Line, Result } from './line.ts'

/** Inputs that require grad where they can, for gradients. */
const differentiable = (inputs: readonly unknown[]): readonly unknown[] =>
  inputs.map((input) => (input instanceof Tensor && dtypeInfo[input.dtype].floating ? input.detach().requiresGrad_(true) : input))

/** A number of an option; null if it was not given. */
function numberOf(options: Line['options'], name: string, what: string, fits: (value: number) => boolean): number | null {
  const text = options.get(name)
  if (text === undefined) return null
  const value = Number(text)
  if (text.trim() !== '' && fits(value)) return value
  throw new ArgumentError(`${name} needs ${what}, got '${text}'.`)
}

/** Runs `tensorfx compare`. */
export async function compare({ operands, options }: Line): Promise<Result> {
  const [folder, second] = operands
  if (folder === undefined || second !== undefined) throw new ArgumentError(`expected one folder, got ${operands.length}.`)
  const names = options.get('--backends')?.split(',') ?? []
  if (names.length === 0) throw new ArgumentError('--backends is missing: name what to compare.')
  const tol = numberOf(options, '--tol', 'a positive number', (value) => value > 0) ?? 1e-4
  const tries = numberOf(options, '--worst-input', 'a whole number of at least 1', (value) => Number.isSafeInteger(value) && value > 0)
  const kind = options.get('--reference') ?? 'float64'
  if (kind !== 'float64' && kind !== 'eager') throw new ArgumentError(`--reference is float64 or eager, got '${kind}'.`)
  installCompile()
  const gradients = options.has('--gradients')
  const { gm, inputs } = readComparison(fileStore(), folder)
  const search = tries === null ? {} : { worstInput: { tries } }
  const result = await compareBackends(gm, gradients ? differentiable(inputs) : inputs, {
    backends: names,
    tol,
    reference: kind,
    gradients,
    ...search,
  })
  const { first } = result
  const directory = options.get('--minify')
  if (first === null || first.kind === 'not judged' || directory === undefined) return { text: String(result), code: first === null ? 0 : 1 }
  const right = [...result.culprits].find(([, culprit]) => culprit === null)?.[0]
  const small = await result.minify(first.backend, { directory, ...(right === undefined ? {} : { against: right }) })
  const nodes = `${result.gm.graph.nodes.length} nodes -> ${small.gm.graph.nodes.length}, in ${small.queries} queries`
  return { text: `${String(result)}\n\n${nodes}\nWrote the repro: node ${small.path ?? ''}`, code: 1 }
}
