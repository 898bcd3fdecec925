// The public surface for fuzz:arguments: the entries, samples whose methods are called, and what calls may change for others.

const camel = (name) => name.replace(/^[A-Z]+(?=[A-Z]|$)|^[A-Z]/, (start) => start.toLowerCase())
const byCamelName = (names) => Object.fromEntries(names.map((name) => [camel(name), name]))

/** Optimizers, by the names of their samples. */
export const OPTIMIZERS = byCamelName([
  'Adam',
  'AdamW',
  'NAdam',
  'RAdam',
  'Adamax',
  'Adagrad',
  'Adadelta',
  'RMSprop',
  'Rprop',
  'ASGD',
  'LBFGS',
  'Adafactor',
])

/** Schedules, with what they need beside the optimizer. */
export const SCHEDULES = {
  stepLR: ['StepLR', 2],
  cyclicLR: ['CyclicLR', 0.1, 1],
  oneCycleLR: ['OneCycleLR', 1, { totalSteps: 10 }],
  reduceLROnPlateau: ['ReduceLROnPlateau'],
  lambdaLR: ['LambdaLR', () => 1],
  multiStepLR: ['MultiStepLR', [2]],
  cosineAnnealingWarmRestarts: ['CosineAnnealingWarmRestarts', 2],
}

/** `load` imports an entry by its name. */
export async function loadSurface(load) {
  const names = [
    'tensorfx',
    'nn',
    'optim',
    'func',
    'autograd',
    'ops',
    'dispatch',
    'fx',
    'fx/passes',
    'fx/json',
    'fx/viewer',
    'fx/experimental',
    'compile',
    'library',
    'aot',
    'inductor',
    'interop',
    'debug',
    'kernels',
    'pytree',
    'rewriter',
    'checkpoint',
    'data',
    'distributed',
    'distributed/fsdp',
  ]
  const entries = {}
  for (const name of names) entries[name.replace('/', '_')] = await load(name)
  const { torch, nn, fx } = entries.tensorfx
  const { distributed } = entries
  const { FakeTensorMode, withMode } = entries.dispatch
  const traced = () => fx.symbolicTrace((x) => torch.relu(x).add(1))
  const samples = {
    x: () => torch.arange(6).view(2, 3),
    graph: () => traced().graph,
    node: () => [...traced().graph.nodes][1],
    graphModule: () => traced(),
    tracer: () => new fx.Tracer(),
    interpreter: () => new fx.Interpreter(traced()),
    transformer: () => new fx.Transformer(traced()),
    linear: () => new nn.Linear(3, 2),
    sequential: () => new nn.Sequential(new nn.Linear(3, 2), new nn.ReLU()),
    conv: () => new nn.Conv2d(1, 2, 3),
    batchNorm: () => new nn.BatchNorm2d(2),
    lstm: () => new nn.LSTM(3, 2),
    attention: () => new nn.MultiheadAttention(4, 2),
    moduleDict: () => new nn.ModuleDict({ a: new nn.ReLU() }),
    moduleList: () => new nn.ModuleList([new nn.ReLU()]),
    parameterDict: () => new nn.ParameterDict({ a: new nn.Parameter(torch.ones([2])) }),
    parameterList: () => new nn.ParameterList([new nn.Parameter(torch.ones([2]))]),
    parametrized: () => nn.utils.parametrizations.weightNorm(new nn.Linear(3, 2)),
    ...Object.fromEntries(Object.entries(OPTIMIZERS).map(([key, name]) => [key, () => new torch.optim[name](new nn.Linear(3, 2).parameters())])),
    ...Object.fromEntries(Object.entries(SCHEDULES).map(([key, [name, ...rest]]) => [key, () => new torch.optim[name](samples.sgd(), ...rest)])),
    ddp: () => new distributed.DistributedDataParallel(new nn.Linear(3, 2)),
    fsdp: () => new entries.distributed_fsdp.FSDP(new nn.Linear(3, 2)),
    fullySharded: () => {
      const model = new nn.Linear(3, 2)
      entries.distributed_fsdp.fullyShard(model)
      return model
    },
    gradScaler: () => new entries.distributed_fsdp.ShardedGradScaler(),
    group: () => group,
    dataLoader: () => new entries.data.DataLoader([1, 2, 3], { shuffle: true }),
    tensorDataset: () => new entries.data.TensorDataset(torch.ones([3, 2]), torch.ones([3])),
    concatDataset: () => new entries.data.ConcatDataset([[1], [2, 3]]),
    subset: () => new entries.data.Subset([1, 2, 3], [2, 0]),
    sampler: () => new distributed.DistributedSampler(new Array(10).fill(0)),
    shardedTensor: () => distributed.ShardedTensor.chunk(torch.ones([4, 2])),
    sgd: () => new torch.optim.SGD(new nn.Linear(3, 2).parameters(), { lr: 0.1 }),
    generator: () => new entries.tensorfx.torch.Generator(),
    memoryFileStore: () => new entries.debug.MemoryFileStore(),
    inputWriter: () => new entries.debug.InputWriter(samples.memoryFileStore(), 'dir'),
    inputReader: () => new entries.debug.InputReader(samples.memoryFileStore(), 'dir'),
    compiled: () => entries.tensorfx.compile((x) => x.add(1)),
    flightRecorder: () => entries.debug.flightRecorder({ model: new nn.Linear(3, 2), steps: 2 }),
  }
  const fake = () => withMode(new FakeTensorMode(), () => torch.ones([2, 3]))
  let group = null
  /** A world of one: calls that wait for other ranks soon give up. */
  const reset = async () => {
    torch.setDefaultDtype('float32')
    entries.tensorfx.setGradEnabled(true)
    entries.autograd.setDetectAnomaly(false)
    entries.distributed_fsdp.setProfilerLog(() => {})
    entries.debug.setLogSink(() => {})
    // Nothing is written to disk.
    entries.debug.setFileStore(new entries.debug.MemoryFileStore())
    if (distributed.isInitialized() && distributed.getBackend() === 'single') return
    if (distributed.isInitialized()) distributed.destroyProcessGroup()
    await distributed.initProcessGroup({ backend: 'single', timeout: 20 })
    group = distributed.newGroup()
  }
  await reset()
  const more = () => [group, samples.ddp(), samples.fsdp(), samples.gradScaler()]
  return { library: { entries, samples, fake, more }, reset }
}
