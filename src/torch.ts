// The namespace object `torch`: what PyTorch users write, and what generated code prints (`torch.nn.functional.gelu(x)`).
import {
  Function,
  autocast,
  backward,
  clearAutocastCache,
  customBwd,
  customFwd,
  enableGrad,
  getAutocastDtype,
  grad,
  inferenceMode,
  isAutocastCacheEnabled,
  isAutocastEnabled,
  isGradEnabled,
  noGrad,
  queueBackwardCallback,
  setGradEnabled,
} from './autograd/index.ts'
import { cond, condOp, map, mapOp, scan, scanOp, whileLoop, whileLoopOp } from './controlFlow/index.ts'
import { sizeFunctions } from './fx/index.ts'
import type { SizeFunctions } from './fx/index.ts'
import { absentNames } from './install/absentNames.ts'
import { installModules } from './install/modules.ts'
import { installOptim } from './install/optim.ts'

import type * as webgpu from './gpu/engine.ts'
import { customOp, defineOp, operatorNamespaces, registerAutograd, registerFake } from './library/index.ts'
import type { OperatorNamespace } from './library/index.ts'
import {
  areDeterministicAlgorithmsEnabled,
  backends,
  getNumThreads,
  memory,
  promoteTypes,
  setNumThreads,
  useDeterministicAlgorithms,
} from './kernels/index.ts'
import type { DType } from './kernels/index.ts'
import * as nn from './nn/index.ts'
import { torchAliases } from './ops/names/aliases.ts'
import * as internal from './ops/generated/internal.ts'
import * as fft from './ops/generated/fft.ts'
import * as linalg from './ops/generated/linalg.ts'
import * as specialOperators from './ops/generated/special.ts'
import * as operators from './ops/generated/torch.ts'
import * as maskedFunctions from './ops/reduction/masked.ts'
import * as signalWindows from './ops/create/signalWindows.ts'
import { allclose, asTensor, assertClose, canCast, equal, histogramdd, resultType, tensor } from './ops/index.ts'
import * as optim from './optim/index.ts'
import { checkArgument, explainUnknownNames, findOverride, inspectAs, withModules } from './protocol/index.ts'
import {
  Generator,
  Tensor,
  broadcastShapes,
  checkTensor,
  dtypeAliases,
  finfo,
  fromTransfer,
  getDefaultDtype,
  getRngState,
  iinfo,
  manualSeed,
  setDefaultDtype,
  setRngState,
} from './tensor/index.ts'

installOptim()
installModules()

/** Members of `torch` that come with an import of their own. */
interface LaterModules {
  /** The graphics card; `import 'tensorfx/webgpu'` brings it. PyTorch's `torch.cuda`. */
  readonly webgpu: Pick<typeof webgpu, 'description' | 'init' | 'loseDevice' | 'profile' | 'stats' | 'synchronize'>
}

/** The type of {@link torch}. */
export type Torch = typeof operators &
  LaterModules &
  SizeFunctions &
  typeof torchAliases & {
    readonly tensor: typeof tensor
    readonly asTensor: typeof asTensor
    /** The same as `asTensor`. */
    readonly asarray: typeof asTensor
    /** Whether a value is a Tensor. */
    readonly isTensor: (value: unknown) => value is Tensor
    /** `x.isFloatingPoint()` */
    readonly isFloatingPoint: (x: Tensor) => boolean
    /** `x.isComplex()` */
    readonly isComplex: (x: Tensor) => boolean
    /** The shape to which all of them broadcast; throws ShapeError if there is none. */
    readonly broadcastShapes: (...shapes: readonly (number | readonly number[])[]) => readonly number[]
    readonly allclose: typeof allclose
    readonly equal: typeof equal
    readonly histogramdd: typeof histogramdd
    /** PyTorch's `torch.testing`. */
    readonly testing: { readonly assertClose: typeof assertClose }
    readonly nn: typeof nn
    readonly optim: typeof optim
    /** PyTorch's `torch.linalg`. */
    readonly linalg: typeof linalg
    /** PyTorch's `torch.fft`: discrete Fourier transforms. */
    readonly fft: typeof fft
    /** PyTorch's `torch.special`. */
    readonly special: typeof special
    /** PyTorch's `torch.masked`: reductions, scans and normalizations of the elements where a mask holds. */
    readonly masked: typeof masked
    /** PyTorch's `torch.signal`: windows. */
    readonly signal: { readonly windows: typeof signalWindows }
    /** PyTorch's `torch.autograd`: gradients without `.grad`, and operators with a backward of your own. */
    readonly autograd: {
      readonly Function: typeof Function
      readonly grad: typeof grad
      readonly backward: typeof backward
      readonly queueBackwardCallback: typeof queueBackwardCallback
    }
    /** Operators by namespace, as they appear in captured graphs: internal primitives, control flow, and what programs define with `torch.library`. */
    readonly ops: { readonly tensorfx: typeof internal; readonly higher_order: typeof higherOrder } & {
      readonly [namespace: string]: OperatorNamespace
    }
    /** PyTorch's `torch.library`: operators of your own. `tensorfx/library` has the same functions, and `opcheck`. */
    readonly library: {
      readonly customOp: typeof customOp
      readonly defineOp: typeof defineOp
      readonly registerFake: typeof registerFake
      readonly registerAutograd: typeof registerAutograd
    }
    /** How much memory is in use, its limit, and what uses it; PyTorch's `torch.cuda.memory`. */
    readonly memory: typeof memory
    /** How kernels may compute; PyTorch's `torch.backends`. */
    readonly backends: typeof backends
    readonly useDeterministicAlgorithms: typeof useDeterministicAlgorithms
    readonly setNumThreads: typeof setNumThreads
    readonly getNumThreads: typeof getNumThreads
    readonly areDeterministicAlgorithmsEnabled: typeof areDeterministicAlgorithmsEnabled
    readonly cond: typeof cond
    readonly whileLoop: typeof whileLoop
    readonly scan: typeof scan
    readonly map: typeof map
    readonly Tensor: typeof Tensor
    readonly Generator: typeof Generator
    readonly manualSeed: typeof manualSeed
    readonly getRngState: typeof getRngState
    readonly setRngState: typeof setRngState
    readonly noGrad: typeof noGrad
    readonly enableGrad: typeof enableGrad
    readonly setGradEnabled: typeof setGradEnabled
    readonly isGradEnabled: typeof isGradEnabled
    readonly inferenceMode: typeof inferenceMode
    readonly autocast: typeof autocast
    readonly isAutocastEnabled: typeof isAutocastEnabled
    readonly isAutocastCacheEnabled: typeof isAutocastCacheEnabled
    readonly getAutocastDtype: typeof getAutocastDtype
    readonly clearAutocastCache: typeof clearAutocastCache
    /** PyTorch's `torch.amp`: mixed precision. */
    readonly amp: {
      readonly autocast: typeof autocast
      readonly GradScaler: typeof optim.GradScaler
      readonly customFwd: typeof customFwd
      readonly customBwd: typeof customBwd
    }
    readonly getDefaultDtype: typeof getDefaultDtype
    readonly setDefaultDtype: typeof setDefaultDtype
    readonly promoteTypes: typeof promoteTypes
    readonly resultType: typeof resultType
    readonly fromTransfer: typeof fromTransfer
    readonly canCast: typeof canCast
    readonly finfo: typeof finfo
    readonly iinfo: typeof iinfo
  } & typeof dtypeAliases & { readonly [D in DType]: D }

/** PyTorch's `torch.special`: its own operators, and those that torch has as well. */
const special = {
  ...specialOperators,
  digamma: operators.digamma,
  erf: operators.erf,
  erfc: operators.erfc,
  erfinv: operators.erfinv,
  exp2: operators.exp2,
  expit: operators.sigmoid,
  expm1: operators.expm1,
  gammainc: operators.igamma,
  gammaincc: operators.igammac,
  gammaln: operators.lgamma,
  i0: operators.i0,
  log1p: operators.log1p,
  logSoftmax: operators.logSoftmax,
  logit: operators.logit,
  logsumexp: operators.logsumexp,
  multigammaln: operators.mvlgamma,
  polygamma: operators.polygamma,
  psi: operators.digamma,
  round: operators.round,
  sinc: operators.sinc,
  softmax: operators.softmax,
  xlogy: operators.xlogy,
}

/** PyTorch's `torch.masked`, with its names. */
const masked = { ...maskedFunctions, var: maskedFunctions.variance }

/** The operators of control flow, as graphs name them. */
const higherOrder: { cond: typeof condOp; whileLoop: typeof whileLoopOp; scan: typeof scanOp; mapImpl: typeof mapOp } = {
  cond: condOp,
  whileLoop: whileLoopOp,
  scan: scanOp,
  mapImpl: mapOp,
}

const isShape = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every((n) => Number.isSafeInteger(n) && n >= 0)

/** A namespace that explains unknown names. */
const namespace = <T extends object>(owner: string, members: T, instead: ReadonlyMap<string, string> = new Map()): T =>
  explainUnknownNames(members, { owner, known: () => Object.keys(members), instead })

type TorchMembers = Omit<Torch, keyof LaterModules>

/** PyTorch's `torch` module. */
export const torch: Torch = namespace(
  'torch',
  withModules<TorchMembers, LaterModules>({
    ...operators,
    ...sizeFunctions,
    ...torchAliases,
    tensor,
    asTensor,
    asarray: asTensor,
    isTensor: (value: unknown): value is Tensor => value instanceof Tensor,
    isFloatingPoint: (x: Tensor) => {
      if (findOverride([x]) === null) checkTensor('torch.isFloatingPoint', 'x', x)
      return x.isFloatingPoint()
    },
    isComplex: (x: Tensor) => {
      if (findOverride([x]) === null) checkTensor('torch.isComplex', 'x', x)
      return x.isComplex()
    },
    broadcastShapes: (...shapes: readonly (number | readonly number[])[]) =>
      shapes.reduce<readonly number[]>((a, b) => {
        const shape: unknown = typeof b === 'number' ? [b] : b
        checkArgument(isShape(shape), 'torch.broadcastShapes', 'shapes', 'lists of sizes', b)
        return isShape(shape) ? broadcastShapes('torch.broadcastShapes', a, shape) : a
      }, []),
    allclose,
    equal,
    histogramdd,
    testing: namespace('torch.testing', { assertClose }),
    nn: namespace('torch.nn', { ...nn }, absentNames('nn')),
    linalg: namespace('torch.linalg', { ...linalg }, absentNames('linalg')),
    fft: namespace('torch.fft', { ...fft }),
    special: namespace('torch.special', special),
    masked: namespace('torch.masked', masked),
    signal: { windows: namespace('torch.signal.windows', { ...signalWindows }) },
    optim: namespace('torch.optim', { ...optim }, absentNames('optim')),
    autograd: namespace('torch.autograd', { Function, grad, backward, queueBackwardCallback }, absentNames('autograd')),
    ops: Object.assign(operatorNamespaces, { tensorfx: internal, higher_order: higherOrder }),
    library: { customOp, defineOp, registerFake, registerAutograd },
    memory: namespace('torch.memory', { ...memory }),
    backends: namespace('torch.backends', backends),
    useDeterministicAlgorithms,
    setNumThreads,
    getNumThreads,
    areDeterministicAlgorithmsEnabled,
    cond,
    whileLoop,
    scan,
    map,
    Tensor,
    Generator,
    manualSeed,
    getRngState,
    setRngState,
    noGrad,
    enableGrad,
    setGradEnabled,
    isGradEnabled,
    inferenceMode,
    autocast,
    isAutocastEnabled,
    isAutocastCacheEnabled,
    getAutocastDtype,
    clearAutocastCache,
    amp: namespace('torch.amp', { autocast, GradScaler: optim.GradScaler, customFwd, customBwd }),
    getDefaultDtype,
    setDefaultDtype,
    promoteTypes,
    resultType,
    fromTransfer,
    canCast,
    finfo,
    iinfo,
    ...dtypeAliases,
    bool: 'bool',
    uint8: 'uint8',
    int8: 'int8',
    int16: 'int16',
    int32: 'int32',
    int64: 'int64',
    float16: 'float16',
    bfloat16: 'bfloat16',
    float32: 'float32',
    float64: 'float64',
    complex64: 'complex64',
    complex128: 'complex128',
  }),
  absentNames('torch'),
)

const count = Object.keys(operators).length
inspectAs(
  torch,
  (self) =>
    `torch { ${count} operators, ${Object.keys(self)
      .filter((name) => !Object.hasOwn(operators, name) && !Object.hasOwn(sizeFunctions, name) && !Object.hasOwn(torchAliases, name))
      .join(', ')} }`,
)
