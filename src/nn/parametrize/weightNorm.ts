// Weight normalization and spectral normalization, as parametrizations and in PyTorch's older form, whose names files may have.
import { noGrad } from '../../autograd/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Module, addHook } from '../../module/index.ts'
import { clamp, copy_, div, dot, movedim, mul, mv, norm, randn, reshape } from '../../ops/index.ts'
import { checkCount, checkOptions } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { ConvTranspose1d, ConvTranspose2d } from '../conv/convTranspose.ts'
import { checkInteger } from '../options.ts'
import { Parameter } from '../parameter.ts'
import { computeAttribute, isParametrized, parameterOf, registerParametrization } from './parametrize.ts'

/** Options of `nn.utils.parametrizations.weightNorm`. */
export interface WeightNormOptions {
  /** The parameter; default 'weight'. */
  readonly name?: string
  /** The dimension of which each slice has a length of its own; default 0. null: one length for all. */
  readonly dim?: number | null
}

/** The length of each slice along `dim`, or of all. */
function lengths(v: Tensor, dim: number | null): Tensor {
  if (dim === null) return norm(v)
  const at = dim < 0 ? dim + v.ndim : dim
  return norm(
    v,
    2,
    v.shape.flatMap((_, d) => (d === at ? [] : [d])),
    true,
  )
}

const normalized = (g: Tensor, v: Tensor, dim: number | null): Tensor => mul(v, div(g, lengths(v, dim)))

class WeightNorm extends Module {
  readonly dim: number | null

  constructor(dim: number | null) {
    super()
    this.dim = dim
  }

  override forward(g: Tensor, v: Tensor): Tensor {
    checkCount(this, arguments, 2)
    return normalized(g, v, this.dim)
  }

  rightInverse(weight: Tensor): readonly Tensor[] {
    return [lengths(weight, this.dim), weight]
  }
}

/**
 * Trains the length and the direction of a weight separately: weight = g * v / |v|. Returns the module, with the parameters
 * `parametrizations.weight.original0` (g) and `original1` (v). PyTorch's `nn.utils.parametrizations.weight_norm`.
 */
export function weightNorm<M extends Module>(module: M, options: WeightNormOptions = {}): M {
  checkCount('weightNorm', arguments, 2)
  checkOptions('weightNorm', options, { name: true, dim: true })
  const { name = 'weight', dim = 0 } = options
  registerParametrization(module, name, new WeightNorm(dim))
  addHook(module, 'loadStateDictPre', renameOld(name))
  return module
}

/** Lets state dicts have the names of the older form, `weight_g` and `weight_v`. */
const renameOld =
  (name: string) =>
  (module: Module, state: Map<string, unknown>, prefix: string): void => {
    if (!isParametrized(module, name)) return
    for (const [k, old] of [`${name}_g`, `${name}_v`].entries()) {
      const value = state.get(prefix + old)
      if (value === undefined) continue
      state.delete(prefix + old)
      state.set(`${prefix}parametrizations.${name}.original${k}`, value)
    }
  }

const readOwn = (module: Module, name: string): Tensor => {
  const value: unknown = Reflect.get(module, name)
  if (value instanceof Tensor) return value
  throw new ArgumentError(`${module.getName()}: ${name} is missing.`)
}

const notAssigned =
  (name: string) =>
  (module: Module): never => {
    throw new ArgumentError(`${module.getName()}: ${name} is computed from other parameters, and cannot be assigned.`)
  }

/** The older form of `nn.utils.parametrizations.weightNorm`, with the parameters `weight_g` and `weight_v`. PyTorch's `nn.utils.weight_norm`. */
export function oldWeightNorm<M extends Module>(module: M, options: WeightNormOptions = {}): M {
  checkCount('weightNorm', arguments, 2)
  checkOptions('weightNorm', options, { name: true, dim: true })
  const { name = 'weight', dim = 0 } = options
  const weight = parameterOf('weightNorm', module, name)
  computeAttribute(module, name, (self) => normalized(readOwn(self, `${name}_g`), readOwn(self, `${name}_v`), dim), notAssigned(name))
  module.registerParameter(`${name}_g`, new Parameter(lengths(weight, dim).detach()))
  module.registerParameter(`${name}_v`, new Parameter(weight.detach()))
  return module
}

/** Options of `nn.utils.parametrizations.spectralNorm`. */
export interface SpectralNormOptions {
  /** The parameter; default 'weight'. */
  readonly name?: string
  /** Steps of the power iteration at each reading in training; default 1. */
  readonly nPowerIterations?: number
  /** The least length that is divided by; default 1e-12. */
  readonly eps?: number
  /** The dimension of the outputs; default 0, of transposed convolutions 1. */
  readonly dim?: number | null
}

const unit = (x: Tensor, eps: number): Tensor => div(x, clamp(norm(x), eps))
const asMatrix = (weight: Tensor, dim: number): Tensor => {
  const first = dim === 0 ? weight : movedim(weight, dim, 0)
  return reshape(first, [first.shape[0] ?? 1, -1])
}

/** Moves u and v towards the singular vectors of the greatest singular value. */
function iterate(matrix: Tensor, u: Tensor, v: Tensor, steps: number, eps: number): void {
  noGrad(() => {
    for (let i = 0; i < steps; i++) {
      copy_(u, unit(mv(matrix, v), eps))
      copy_(v, unit(mv(matrix.t(), u), eps))
    }
  })
}

const divided = (weight: Tensor, matrix: Tensor, u: Tensor, v: Tensor): Tensor => div(weight, dot(u, mv(matrix, v)))

class SpectralNorm extends Module {
  readonly dim: number
  readonly nPowerIterations: number
  readonly eps: number
  declare _u: Tensor
  declare _v: Tensor

  constructor(weight: Tensor, dim: number, nPowerIterations: number, eps: number) {
    super()
    this.dim = dim
    this.nPowerIterations = nPowerIterations
    this.eps = eps
    if (weight.ndim < 2) return
    const matrix = asMatrix(weight.detach(), dim)
    const vector = (size: number): Tensor => unit(randn([size], { dtype: weight.dtype }), eps)
    this.registerBuffer('_u', vector(matrix.size(0)))
    this.registerBuffer('_v', vector(matrix.size(1)))
    iterate(matrix, this._u, this._v, 15, eps)
  }

  override forward(weight: Tensor): Tensor {
    checkCount(this, arguments, 1)
    if (weight.ndim < 2) return unit(weight, this.eps)
    const matrix = asMatrix(weight, this.dim)
    if (this.training) iterate(matrix, this._u, this._v, this.nPowerIterations, this.eps)
    // Copies, since a later reading moves the vectors.
    return divided(weight, matrix, this._u.clone(), this._v.clone())
  }

  rightInverse(value: Tensor): Tensor {
    return value
  }
}

function readSpectral(module: Module, options: SpectralNormOptions): Required<SpectralNormOptions> & { readonly dim: number } {
  checkOptions('spectralNorm', options, { name: true, nPowerIterations: 'number', eps: 'number', dim: true })
  const { name = 'weight', nPowerIterations = 1, eps = 1e-12, dim = null } = options
  checkInteger('spectralNorm', 'nPowerIterations', nPowerIterations)
  const transposed = module instanceof ConvTranspose1d || module instanceof ConvTranspose2d
  return { name, nPowerIterations, eps, dim: dim ?? (transposed ? 1 : 0) }
}

/**
 * Divides a weight by its greatest singular value, which is estimated by a power iteration. Returns the module, with the parameter
 * `parametrizations.weight.original` and the buffers `parametrizations.weight.0._u` and `_v`. PyTorch's `nn.utils.parametrizations.spectral_norm`.
 */
export function spectralNorm<M extends Module>(module: M, options: SpectralNormOptions = {}): M {
  checkCount('spectralNorm', arguments, 2)
  const { name, nPowerIterations, eps, dim } = readSpectral(module, options)
  const weight = parameterOf('spectralNorm', module, name)
  return registerParametrization(module, name, new SpectralNorm(weight, dim, nPowerIterations, eps))
}

/** The older form of `nn.utils.parametrizations.spectralNorm`, with the parameter `weight_orig` and the buffers `weight_u` and `weight_v`. PyTorch's `nn.utils.spectral_norm`. */
export function oldSpectralNorm<M extends Module>(module: M, options: SpectralNormOptions = {}): M {
  checkCount('spectralNorm', arguments, 2)
  const { name, nPowerIterations, eps, dim } = readSpectral(module, options)
  const weight = parameterOf('spectralNorm', module, name)
  const matrix = asMatrix(weight.detach(), dim)
  const read = (self: Module): Tensor => {
    const original = readOwn(self, `${name}_orig`)
    const [u, v] = [readOwn(self, `${name}_u`), readOwn(self, `${name}_v`)]
    const rows = asMatrix(original, dim)
    if (self.training)
      noGrad(() => {
        for (let i = 0; i < nPowerIterations; i++) {
          copy_(v, unit(mv(rows.t(), u), eps))
          copy_(u, unit(mv(rows, v), eps))
        }
      })
    return divided(original, rows, u.clone(), v.clone())
  }
  computeAttribute(module, name, read, notAssigned(name))
  module.registerParameter(`${name}_orig`, weight)
  module.registerBuffer(`${name}_u`, unit(randn([matrix.size(0)], { dtype: weight.dtype }), eps))
  module.registerBuffer(`${name}_v`, unit(randn([matrix.size(1)], { dtype: weight.dtype }), eps))
  return module
}
