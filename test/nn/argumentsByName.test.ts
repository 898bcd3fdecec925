// Required arguments of layers by name, as in PyTorch: `new nn.Conv2d(3, 8, { kernelSize: 3 })`. Every layer of nn is asked which arguments it misses until it can be made.
import { ArgumentError, nn, torch } from 'tensorfx'
import { expect, expectTypeOf, it } from 'vitest'

const [encoderLayer, decoderLayer] = [new nn.TransformerEncoderLayer(4, 2, 8), new nn.TransformerDecoderLayer(4, 2, 8)]

/** A value for each name that a required argument has in PyTorch. */
const VALUES: Readonly<Record<string, () => unknown>> = {
  inFeatures: () => 4,
  outFeatures: () => 3,
  in1Features: () => 4,
  in2Features: () => 3,
  inChannels: () => 4,
  outChannels: () => 6,
  kernelSize: () => 3,
  numFeatures: () => 4,
  numEmbeddings: () => 5,
  embeddingDim: () => 4,
  embedDim: () => 4,
  numHeads: () => 2,
  dModel: () => 4,
  nhead: () => 2,
  numLayers: () => 2,
  encoderLayer: () => encoderLayer,
  decoderLayer: () => decoderLayer,
  inputSize: () => 4,
  hiddenSize: () => 3,
  normalizedShape: () => [2, 3],
  numGroups: () => 2,
  numChannels: () => 4,
  size: () => 3,
  outputSize: () => 2,
  normType: () => 2,
  padding: () => 1,
  value: () => 0.5,
  threshold: () => 0.1,
  upscaleFactor: () => 2,
  downscaleFactor: () => 3,
  groups: () => 2,
  dim: () => 1,
  unflattenedSize: () => [2, 2],
  nClasses: () => 5,
  numClasses: () => 5,
  cutoffs: () => [2],
}

/** Arguments without which a layer cannot be made or is large, though PyTorch has a default. */
const GIVEN: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  Softmax: { dim: 1 },
  LogSoftmax: { dim: 1 },
  Softmin: { dim: 1 },
  FractionalMaxPool2d: { outputSize: 2 },
  FractionalMaxPool3d: { outputSize: 2 },
  MultiheadAttention: { bias: false },
  TransformerEncoderLayer: { dimFeedforward: 8 },
  TransformerDecoderLayer: { dimFeedforward: 8 },
  Transformer: { dModel: 4, nhead: 2, numEncoderLayers: 1, numDecoderLayers: 1, dimFeedforward: 8 },
}

type Layer = new (...args: readonly unknown[]) => nn.Module
const isLayer = (value: unknown): value is Layer => typeof value === 'function' && value.prototype instanceof nn.Module
/** Containers take modules or parameters, by whatever names. */
const isContainer = (name: string): boolean => name === 'Module' || /^(Sequential|\w+(List|Dict))$/.test(name)
const layers = Object.entries(nn).flatMap(([name, value]): [string, Layer][] => (isLayer(value) && !isContainer(name) ? [[name, value]] : []))

/** What a layer is: its text, its sizes and its numbers, which a seed has made. */
function described(make: () => nn.Module): unknown {
  torch.manualSeed(1)
  const layer = make()
  // Layers that wait for their first input have no numbers yet.
  const parameters = layer.constructor.name.startsWith('Lazy') ? [] : [...layer.parameters()]
  const numbers = parameters.map((parameter) => (parameter instanceof nn.Parameter ? [parameter.shape, parameter.toArray()] : null))
  return [String(layer), layer.constructor.name, numbers]
}

/** The names of the required arguments in order: what the layer says is missing. */
function requiredOf(name: string, type: Layer): string[] {
  const names: string[] = []
  for (;;) {
    try {
      void new type({ ...GIVEN[name], ...Object.fromEntries(names.map((n) => [n, VALUES[n]?.()])) })
      return names
    } catch (error) {
      const missing = /argument '(\w+)' is missing/.exec(String(error))?.[1]
      if (!(error instanceof ArgumentError) || missing === undefined || names.includes(missing)) throw error
      expect(Object.keys(VALUES), `nn.${name}`).toContain(missing)
      names.push(missing)
    }
  }
}

const required = new Map(layers.map(([name, type]) => [name, requiredOf(name, type)]))

it('PyTorch has at least so many layers with required arguments', () => {
  expect([...required.values()].filter((names) => names.length > 0).length).toBeGreaterThan(75)
  expect(required.get('Conv2d')).toEqual(['inChannels', 'outChannels', 'kernelSize'])
  expect(required.get('AdaptiveLogSoftmaxWithLoss')).toEqual(['inFeatures', 'nClasses', 'cutoffs'])
})

it.each(layers.filter(([name]) => required.get(name)?.length !== 0))('nn.%s takes each required argument by position or by name', (name, type) => {
  const names = required.get(name) ?? []
  const options = GIVEN[name] ?? {}
  const values = names.map((n) => VALUES[n])
  const byPosition = described(() => new type(...values.map((make) => make?.()), ...(Object.keys(options).length === 0 ? [] : [options])))
  for (let first = 0; first < names.length; first++) {
    const named = (): Record<string, unknown> => ({ ...options, ...Object.fromEntries(names.slice(first).map((n) => [n, VALUES[n]?.()])) })
    const positional = (): unknown[] => values.slice(0, first).map((make) => make?.())
    const given = named()
    expect(
      described(() => new type(...positional(), given)),
      `${first} by position`,
    ).toEqual(byPosition)
    expect(Object.keys(given), 'the options are not changed').toEqual(Object.keys(named()))
    // Without the last one.
    const last = names.at(-1) ?? ''
    const { [last]: _, ...rest } = named()
    expect(() => new type(...positional(), rest)).toThrow(`nn.${name}: argument '${last}' is missing`)
    // In PyTorch's spelling.
    const snake = last.replaceAll(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)
    if (snake !== last)
      expect(() => new type(...positional(), { ...rest, [snake]: 2 })).toThrow(`nn.${name}: unknown option '${snake}'; did you mean '${last}'?`)
    expect(() => new type(...positional(), { ...named(), hovercraft: 2 })).toThrow(/unknown option 'hovercraft'/)
    if (first > 0) expect(() => new type(...positional(), { ...named(), [names[0] ?? '']: 2 })).toThrow(`nn.${name}: '${names[0]}' was given twice`)
  }
})

it('the types know the names', () => {
  expectTypeOf(new nn.Linear({ inFeatures: 3, outFeatures: 4, bias: false })).toEqualTypeOf<nn.Linear>()
  expectTypeOf(new nn.Conv2d(3, 8, { kernelSize: 3, padding: 1 })).toEqualTypeOf<nn.Conv2d>()
  expectTypeOf(new nn.ZeroPad2d({ padding: 1 })).toEqualTypeOf<nn.ZeroPad2d>()
  // @ts-expect-error outFeatures is missing
  expect(() => new nn.Linear({ inFeatures: 3 })).toThrow(
    "nn.Linear: argument 'outFeatures' is missing. Give it by position, before the options, or by name: { outFeatures: … }.",
  )
  // @ts-expect-error a text is no size
  expect(() => new nn.Linear({ inFeatures: 3, outFeatures: '4' })).toThrow("nn.Linear: outFeatures must be an integer of at least 0, got '4'")
  // @ts-expect-error there is no such option
  expect(() => new nn.MaxPool2d({ kernelSize: 2, strid: 2 })).toThrow("unknown option 'strid'; did you mean 'stride'?")
})
