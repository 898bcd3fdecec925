// Right calls of the public surface, from which mistakes are drawn: every operator, with the arguments of its value cases, and layers, modules, optimizers and tools, with what
// each argument may be.
import { compile, fx, nn, optim, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { functionalCall, grad, vmap } from 'tensorfx/func'
import { makeFx } from 'tensorfx/aot'
import { readSafetensors, writeSafetensors } from 'tensorfx/interop'
import { allValueCases, replace, tensorOf } from '../ops/valueCases.ts'
import { builtInOps } from '../ops/builtInOps.ts'
import type { OpDef } from 'tensorfx/dispatch'

/** What an argument may be. */
export type Kind =
  | 'tensor'
  | 'tensors'
  | 'integer'
  | 'integers'
  | 'number'
  | 'boolean'
  | 'string'
  | 'dtype'
  | 'module'
  | 'parameters'
  | 'function'
  | 'optimizer'
  | 'state'
  | 'bytes'

export interface Parameter {
  readonly name: string
  readonly kinds: readonly Kind[]
  readonly optional: boolean
}

/** A call that is right. */
export interface Call {
  /** How messages name what is called: `torch.softmax`, `nn.Linear`. */
  readonly name: string
  /** How a program writes it, for reports. */
  readonly code: string
  /** All parameters, by position. */
  readonly parameters: readonly Parameter[]
  /** The arguments by position, made anew: a mistake changes them. */
  readonly positional: () => unknown[]
  readonly options: () => Record<string, unknown>
  readonly run: (...args: readonly unknown[]) => unknown
  /** Names of options, if there are options. */
  readonly optionNames: readonly string[]
  /** What it is: operators and layers count their arguments; other functions ignore more of them, as JavaScript does. */
  readonly of: 'operators' | 'layers' | 'functions'
}

const KIND_OF_BASE: Readonly<Record<string, Kind>> = {
  Tensor: 'tensor',
  Scalar: 'number',
  int: 'integer',
  float: 'number',
  bool: 'boolean',
  str: 'string',
  ScalarType: 'dtype',
}

const isOptions = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

/** What the schema of an operator says of its arguments. */
function parametersOf(op: OpDef): Parameter[] {
  const own = op.aliasOf ?? op
  const takesNumbers = (own.functional ?? own).tags.has('pointwise')
  return op.schema.args.map(({ name, type, hasDefault }, i) => {
    const base = KIND_OF_BASE[type.base]
    if (base === undefined) return { name, kinds: [], optional: hasDefault }
    if (type.list)
      return {
        name,
        kinds: type.base === 'int' ? ['integers', 'integer'] : type.base === 'Tensor' ? ['tensors', 'tensor'] : [],
        optional: hasDefault,
      }
    const number = base === 'tensor' && ((takesNumbers && i > 0) || op.tags.has('numberFirst'))
    return { name, kinds: number ? ['tensor', 'number', 'boolean'] : base === 'number' ? ['number', 'boolean'] : [base], optional: hasDefault }
  })
}

/** The calls of the operators in their value cases, the first two of each. */
async function operatorCalls(): Promise<Call[]> {
  const cases = await allValueCases()
  // Programs do not call the operators that derivatives and graphs are made of.
  const called = builtInOps().filter(({ qualname }) => !qualname.startsWith('torch.ops.'))
  return called.flatMap((op) => {
    const parameters = parametersOf(op)
    return (cases.get(op.qualname) ?? []).slice(0, 2).map((one): Call => {
      const args = (): unknown[] => one.args.map((arg) => replace(arg, (plain) => tensorOf(plain, 'float32', 'int64')))
      const options = (): Record<string, unknown> => {
        const last = args().at(-1)
        return isOptions(last) ? last : {}
      }
      const space = op.qualname.slice(0, op.qualname.lastIndexOf('.'))
      return {
        name: op.qualname,
        code: `${space}.${op.fn.name}`,
        parameters,
        positional: () => args().filter((arg) => !isOptions(arg)),
        options,
        run: (...given) => Reflect.apply(op.fn, undefined, given),
        optionNames: parameters.map((p) => p.name),
        of: 'operators',
      }
    })
  })
}

/** What options of layers, optimizers and tools may be. */
const OPTION_KINDS: Readonly<Record<string, readonly Kind[]>> = {
  ...Object.fromEntries(
    'bias affine trackRunningStats elementwiseAffine batchFirst normFirst bidirectional inplace ceilMode strict persistent requiresGrad retainGraph createGraph fullgraph skipReplay tieWeights equalNan'
      .split(' ')
      .map((name) => [name, ['boolean']] as const),
  ),
  ...Object.fromEntries(
    'eps momentum dropout lr weightDecay negativeSlope p labelSmoothing rtol atol etaMin gamma'.split(' ').map((name) => [name, ['number']] as const),
  ),
  stride: ['integer', 'integers'],
  dilation: ['integer', 'integers'],
  groups: ['integer'],
  numLayers: ['integer'],
  dimFeedforward: ['integer'],
  reduction: ['string'],
  paddingMode: ['string'],
  dtype: ['dtype'],
}

/** The options of a call that a mistake may give another value, with what they may be. */
export const optionsOf = (call: Call): readonly Parameter[] =>
  call.optionNames.flatMap((name) => {
    const known = call.parameters.findIndex((p) => p.name === name)
    const parameter = call.parameters[known]
    if (parameter !== undefined) return known >= call.positional().length && parameter.kinds.length > 0 ? [parameter] : []
    const kinds = OPTION_KINDS[name]
    return kinds === undefined ? [] : [{ name, kinds, optional: true }]
  })

const required = (name: string, ...kinds: Kind[]): Parameter => ({ name, kinds, optional: false })
const optional = (name: string, ...kinds: Kind[]): Parameter => ({ name, kinds, optional: true })

const linear = (): nn.Linear => new nn.Linear(3, 2)
const sgd = (): optim.SGD => new optim.SGD(linear().parameters(), { lr: 0.1 })
const x = (): Tensor => torch.ones([2, 3])
const image = (): Tensor => torch.ones([2, 3, 8, 8])

/** A call of something else than an operator. */
function call(
  name: string,
  parameters: readonly Parameter[],
  positional: () => unknown[],
  run: (...args: readonly unknown[]) => unknown,
  { options = () => ({}), optionNames = [] }: { options?: () => Record<string, unknown>; optionNames?: readonly string[] } = {},
): Call {
  return {
    name,
    code: name,
    parameters,
    positional,
    options,
    run,
    optionNames,
    of: name.startsWith('nn.') && name !== 'nn.Parameter' ? 'layers' : 'functions',
  }
}

const make =
  (type: object) =>
  (...args: readonly unknown[]): unknown =>
    typeof type === 'function' ? Reflect.construct(type, args) : undefined
const on =
  (target: () => object, method: string) =>
  (...args: readonly unknown[]): unknown => {
    const self = target()
    const fn: unknown = Reflect.get(self, method)
    return typeof fn === 'function' ? Reflect.apply(fn, self, args) : undefined
  }

const size = (name: string): Parameter => required(name, 'integer')
const layer = (
  name: string,
  type: object,
  sizes: readonly [string, number][],
  optionNames: readonly string[],
  more: readonly Parameter[] = [],
): Call => call(`nn.${name}`, [...sizes.map(([n]) => size(n)), ...more], () => sizes.map(([, value]) => value), make(type), { optionNames })

/** Optimizers and schedules: what they take first. */
const optimizers = (['SGD', 'Adam', 'AdamW', 'RMSprop', 'Adagrad', 'Adadelta', 'NAdam', 'Adamax'] as const).map((name) =>
  call(`optim.${name}`, [required('params', 'parameters')], () => [[...linear().parameters()]], make(Reflect.get(optim, name)), {
    options: () => ({ lr: 0.1 }),
    optionNames: ['lr', 'weightDecay'],
  }),
)

function otherCalls(): Call[] {
  const bias = ['bias']
  return [
    layer(
      'Linear',
      nn.Linear,
      [
        ['inFeatures', 3],
        ['outFeatures', 2],
      ],
      bias,
    ),
    layer(
      'Conv1d',
      nn.Conv1d,
      [
        ['inChannels', 3],
        ['outChannels', 2],
        ['kernelSize', 3],
      ],
      ['stride', 'padding', 'dilation', 'groups', 'bias', 'paddingMode'],
    ),
    layer(
      'Conv2d',
      nn.Conv2d,
      [
        ['inChannels', 3],
        ['outChannels', 2],
        ['kernelSize', 3],
      ],
      ['stride', 'padding', 'dilation', 'groups', 'bias', 'paddingMode'],
    ),
    layer(
      'ConvTranspose2d',
      nn.ConvTranspose2d,
      [
        ['inChannels', 3],
        ['outChannels', 2],
        ['kernelSize', 3],
      ],
      ['stride', 'padding', 'outputPadding', 'groups'],
    ),
    layer(
      'Embedding',
      nn.Embedding,
      [
        ['numEmbeddings', 5],
        ['embeddingDim', 2],
      ],
      ['paddingIdx', 'maxNorm', 'normType'],
    ),
    layer('BatchNorm1d', nn.BatchNorm1d, [['numFeatures', 3]], ['eps', 'momentum', 'affine', 'trackRunningStats']),
    layer('BatchNorm2d', nn.BatchNorm2d, [['numFeatures', 3]], ['eps', 'momentum', 'affine', 'trackRunningStats']),
    layer(
      'GroupNorm',
      nn.GroupNorm,
      [
        ['numGroups', 1],
        ['numChannels', 3],
      ],
      ['eps', 'affine'],
    ),
    layer(
      'LSTM',
      nn.LSTM,
      [
        ['inputSize', 3],
        ['hiddenSize', 2],
      ],
      ['numLayers', 'bias', 'batchFirst', 'dropout', 'bidirectional'],
    ),
    layer(
      'GRU',
      nn.GRU,
      [
        ['inputSize', 3],
        ['hiddenSize', 2],
      ],
      ['numLayers', 'bias', 'batchFirst', 'dropout', 'bidirectional'],
    ),
    layer(
      'MultiheadAttention',
      nn.MultiheadAttention,
      [
        ['embedDim', 4],
        ['numHeads', 2],
      ],
      ['dropout', 'bias', 'batchFirst'],
    ),
    layer(
      'TransformerEncoderLayer',
      nn.TransformerEncoderLayer,
      [
        ['dModel', 4],
        ['nhead', 2],
      ],
      ['dimFeedforward', 'dropout', 'activation', 'layerNormEps', 'batchFirst', 'normFirst'],
    ),
    call('nn.MaxPool2d', [required('kernelSize', 'integer', 'integers')], () => [2], make(nn.MaxPool2d), {
      optionNames: ['stride', 'padding', 'ceilMode'],
    }),
    call('nn.AvgPool2d', [required('kernelSize', 'integer', 'integers')], () => [2], make(nn.AvgPool2d), {
      optionNames: ['stride', 'padding', 'ceilMode'],
    }),
    call('nn.LayerNorm', [required('normalizedShape', 'integer', 'integers')], () => [3], make(nn.LayerNorm), {
      optionNames: ['eps', 'elementwiseAffine'],
    }),
    call('nn.Dropout', [optional('p', 'number')], () => [0.5], make(nn.Dropout), { optionNames: ['p', 'inplace'] }),
    call('nn.Softmax', [optional('dim', 'integer')], () => [1], make(nn.Softmax), { optionNames: ['dim'] }),
    call('nn.Flatten', [optional('startDim', 'integer'), optional('endDim', 'integer')], () => [1, -1], make(nn.Flatten), {
      optionNames: ['startDim', 'endDim'],
    }),
    call('nn.LeakyReLU', [optional('negativeSlope', 'number')], () => [0.1], make(nn.LeakyReLU), { optionNames: ['negativeSlope', 'inplace'] }),
    call('nn.CrossEntropyLoss', [], () => [], make(nn.CrossEntropyLoss), {
      options: () => ({ labelSmoothing: 0.1 }),
      optionNames: ['weight', 'ignoreIndex', 'reduction', 'labelSmoothing'],
    }),
    call('nn.MSELoss', [], () => [], make(nn.MSELoss), { options: () => ({ reduction: 'sum' }), optionNames: ['reduction'] }),
    call('nn.Sequential', [optional('0', 'module'), optional('1', 'module')], () => [linear(), new nn.ReLU()], make(nn.Sequential)),
    call('nn.Parameter', [required('data', 'tensor')], () => [x()], make(nn.Parameter), { optionNames: ['requiresGrad'] }),
    call('linear', [required('input', 'tensor')], () => [x()], on(linear, 'call')),
    call(
      'conv2d',
      [required('input', 'tensor')],
      () => [image()],
      on(() => new nn.Conv2d(3, 2, 3), 'call'),
    ),
    call(
      'batchNorm',
      [required('input', 'tensor')],
      () => [image()],
      on(() => new nn.BatchNorm2d(3), 'call'),
    ),
    call(
      'layerNorm',
      [required('input', 'tensor')],
      () => [x()],
      on(() => new nn.LayerNorm(3), 'call'),
    ),
    call(
      'embedding',
      [required('input', 'tensor')],
      () => [torch.tensor([0, 1]).long()],
      on(() => new nn.Embedding(5, 2), 'call'),
    ),
    call('loadStateDict', [required('state', 'state')], () => [linear().stateDict()], on(linear, 'loadStateDict'), { optionNames: ['strict'] }),
    call('registerBuffer', [required('name', 'string'), required('mean', 'tensor')], () => ['mean', x()], on(linear, 'registerBuffer'), {
      optionNames: ['persistent'],
    }),
    call(
      'registerParameter',
      [required('name', 'string'), required('scale', 'tensor')],
      () => ['scale', new nn.Parameter(x())],
      on(linear, 'registerParameter'),
    ),
    call('addModule', [required('name', 'string'), required('next', 'module')], () => ['next', linear()], on(linear, 'addModule')),
    call('apply', [required('fn', 'function')], () => [() => {}], on(linear, 'apply')),
    call('train', [optional('mode', 'boolean')], () => [true], on(linear, 'train')),
    call('requiresGrad_', [optional('value', 'boolean')], () => [true], on(linear, 'requiresGrad_')),
    call(
      'clipGradNorm_',
      [required('parameters', 'parameters', 'tensor'), required('maxNorm', 'number')],
      () => [[...linear().parameters()], 1],
      (...args) => Reflect.apply(nn.utils.clipGradNorm_, undefined, args),
    ),
    ...optimizers,
    call('optim.StepLR', [required('optimizer', 'optimizer'), required('stepSize', 'integer')], () => [sgd(), 2], make(optim.StepLR), {
      optionNames: ['gamma'],
    }),
    call('optim.ExponentialLR', [required('optimizer', 'optimizer'), required('gamma', 'number')], () => [sgd(), 0.9], make(optim.ExponentialLR)),
    call(
      'optim.CosineAnnealingLR',
      [required('optimizer', 'optimizer'), required('tMax', 'number')],
      () => [sgd(), 10],
      make(optim.CosineAnnealingLR),
      { optionNames: ['etaMin'] },
    ),
    call('optim.LambdaLR', [required('optimizer', 'optimizer'), required('lrLambda', 'function')], () => [sgd(), () => 1], make(optim.LambdaLR)),
    call(
      'symbolicTrace',
      [required('root', 'module', 'function')],
      () => [linear()],
      (...args) => Reflect.apply(fx.symbolicTrace, undefined, args),
      { optionNames: ['concreteArgs'] },
    ),
    call(
      'compile',
      [required('fn', 'module', 'function')],
      () => [linear()],
      (...args) => Reflect.apply(compile, undefined, args),
      { optionNames: ['backend', 'fullgraph', 'skipReplay', 'onGraph'] },
    ),
    call(
      'makeFx',
      [required('fn', 'module', 'function')],
      () => [(a: Tensor) => a.relu()],
      (...args) => Reflect.apply(makeFx, undefined, args),
    ),
    call(
      'vmap',
      [required('fn', 'module', 'function')],
      () => [(a: Tensor) => a.relu()],
      (...args) => Reflect.apply(vmap, undefined, args),
      { optionNames: ['inDims', 'outDims'] },
    ),
    call(
      'grad',
      [required('fn', 'module', 'function')],
      () => [(a: Tensor) => a.sum()],
      (...args) => Reflect.apply(grad, undefined, args),
      { optionNames: ['argnums', 'hasAux'] },
    ),
    call(
      'functionalCall',
      [required('module', 'module'), required('state', 'state'), required('args', 'tensors')],
      () => [linear(), {}, [x()]],
      (...args) => Reflect.apply(functionalCall, undefined, args),
      { optionNames: ['strict', 'tieWeights'] },
    ),
    call(
      'noGrad',
      [required('fn', 'function')],
      () => [() => 1],
      (...args) => Reflect.apply(torch.noGrad, undefined, args),
    ),
    call(
      'writeSafetensors',
      [required('tensors', 'state')],
      () => [linear().stateDict()],
      (...args) => Reflect.apply(writeSafetensors, undefined, args),
    ),
    call(
      'readSafetensors',
      [required('bytes', 'bytes')],
      () => [writeSafetensors(linear().stateDict())],
      (...args) => Reflect.apply(readSafetensors, undefined, args),
    ),
    call(
      'torch.tensor',
      [],
      () => [[1, 2]],
      (...args) => Reflect.apply(torch.tensor, undefined, args),
      { optionNames: ['dtype', 'requiresGrad'] },
    ),
    call(
      'backward',
      [optional('gradient', 'tensor')],
      () => [torch.ones([2])],
      on(() => torch.ones([2]).requiresGrad_().mul(2), 'backward'),
      { optionNames: ['retainGraph', 'createGraph'] },
    ),
    call(
      'torch.manualSeed',
      [required('seed', 'integer')],
      () => [0],
      (...args) => Reflect.apply(torch.manualSeed, undefined, args),
    ),
    call(
      'torch.allclose',
      [required('self', 'tensor'), required('other', 'tensor')],
      () => [x(), x()],
      (...args) => Reflect.apply(torch.allclose, undefined, args),
      { optionNames: ['rtol', 'atol', 'equalNan'] },
    ),
    call(
      'torch.equal',
      [required('self', 'tensor'), required('other', 'tensor')],
      () => [x(), x()],
      (...args) => Reflect.apply(torch.equal, undefined, args),
    ),
  ]
}

/** All right calls. */
export const rightCalls = async (): Promise<readonly Call[]> => [...(await operatorCalls()), ...otherCalls()]
