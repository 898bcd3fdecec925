// A method that was taken off its object (`const { step } = optimizer; step()`) says so. Every method of the objects that programs hold is called that way.
import { expect, it } from 'vitest'
import { TensorfxError, fx, nn, optim, torch } from 'tensorfx'

const layer = new nn.Linear(3, 2)
const optimizer = new optim.SGD(layer.parameters(), { lr: 0.1 })
const gm = fx.symbolicTrace((x) => torch.relu(x).add(1))
const OBJECTS: Readonly<Record<string, object>> = {
  tensor: torch.ones([2]),
  generator: new torch.Generator(),
  linear: layer,
  conv: new nn.Conv2d(1, 2, 3),
  batchNorm: new nn.BatchNorm2d(2),
  lstm: new nn.LSTM(3, 2),
  sequential: new nn.Sequential(new nn.Linear(3, 2)),
  moduleList: new nn.ModuleList([new nn.ReLU()]),
  moduleDict: new nn.ModuleDict({ a: new nn.ReLU() }),
  sgd: optimizer,
  adam: new optim.Adam(layer.parameters()),
  lbfgs: new optim.LBFGS(layer.parameters()),
  stepLR: new optim.StepLR(optimizer, 2),
  cosine: new optim.CosineAnnealingLR(optimizer, 2),
  reduceLROnPlateau: new optim.ReduceLROnPlateau(optimizer),
  graph: gm.graph,
  node: gm.graph.outputNode(),
  graphModule: gm,
  interpreter: new fx.Interpreter(gm),
}

/** What programs do not call: methods that the library calls or that subclasses override, by the objects that have them, and conversions, which the language calls. */
const OTHERS = new Set(
  Object.values({
    language: 'toString toJSON valueOf',
    tensors: 'transfer realize newTensor getitem asParameter draw',
    modules:
      'ownParameters ownBuffers getName resetParameters resetRunningStats extraRepr suffixes runPacked firstStates layers convolve checkInput run keys values',
    optimizers:
      'stateOf readOptions checkOption checkGroup checkBetas checkAtLeast0 update shapeOfState readState newState rate rateAfter apply walk improves',
    graphs:
      'willChange tracerClass relist rename processOutputs processInputs numberNodes isListed isImpure generateCode formatNode shallowCopy makeLike makeEmpty cloneWith isImpureModule isImpureBody forgetCode fireReplaceHooks fireEraseHooks fireCreateHooks beforeEdit',
    interpreters: 'runNode mapNodesToValues fetchAttr fetchArgsKwargs callModule callMethod callFunction getAttr placeholder output',
  }).flatMap((names) => names.split(' ')),
)

/** Operators are named by their schemas. */
const plain = (text: string): string => text.replaceAll('_', '').toLowerCase()

/** Methods of graphs that interpreters have too. */
const MADE = new Set(['callModule', 'callMethod', 'callFunction', 'getAttr', 'placeholder', 'output'])

function* methodsOf(object: object): Generator<[string, object]> {
  const seen = new Set<string>()
  for (let at: object | null = object; at !== null && at !== Object.prototype && at !== Function.prototype; at = Object.getPrototypeOf(at))
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (typeof value !== 'function' || value instanceof nn.Module || name === 'constructor' || seen.has(name)) continue
      seen.add(name)
      yield [name, value]
    }
}

it.each(Object.entries(OBJECTS))('each method of a %s without its object says so', async (kind, object) => {
  const silent: string[] = []
  let count = 0
  for (const [name, method] of methodsOf(object)) {
    if (OTHERS.has(name) && !(kind === 'graph' && MADE.has(name))) continue
    count++
    try {
      const result: unknown = await Reflect.apply(method as () => unknown, undefined, [])
      if (typeof result === 'object' && result !== null && 'next' in result && typeof result.next === 'function') result.next()
    } catch (error) {
      if (!(error instanceof TensorfxError) || !plain(error.message).includes(plain(name))) silent.push(`${name}: ${String(error)}`)
    }
  }
  expect(silent).toEqual([])
  expect(count).toBeGreaterThan(1)
})
