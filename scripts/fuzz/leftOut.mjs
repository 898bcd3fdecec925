// What fuzz:arguments leaves out, each with the reason.
import { OPTIMIZERS, SCHEDULES } from './surface.mjs'

/** Methods of samples. */
const methods = (samples, names, reason) => Object.fromEntries(samples.flatMap((of) => names.map((name) => [`${of}.${name}`, reason])))

/** What the fuzzer does not call, and why: names, or starts of names; `new X` leaves out the constructor alone. */
export const LEFT_OUT = {
  'new tensorfx.Tensor': 'internal: tensors are made by torch.tensor and the like',
  'tensorfx.Tensor.empty': 'internal',
  'tensorfx.Tensor.fake': 'internal',
  'tensorfx.torch.autograd.Function.forward': 'overridden by the user',
  'tensorfx.torch.autograd.Function.backward': 'overridden by the user',
  'tensorfx.torch.ops.higher_order': 'what graphs record; programs call cond, whileLoop, scan and map',
  'new distributed.ProcessGroup': 'internal: made by newGroup',
  'new distributed.ShardedTensor': 'internal: made by chunk and fromLocalShards',
  'new debug.BackendComparison': 'internal: made by compareBackends',
  'new debug.FlightReport': 'internal: made by flightRecorder',
  'new distributed.Work': 'internal: made by collectives',
  'distributed.runRanks': 'starts threads',
  'tensorfx.optim.Optimizer': 'abstract: its subclasses check',
  ...methods(
    ['sgd', ...Object.keys(OPTIMIZERS)],
    ['checkGroup', 'checkAtLeast0', 'checkBetas', 'checkOption', 'update', 'stateOf', 'shapeOfState', 'newState', 'readState'],
    'protected',
  ),
  ...methods(
    Object.keys(SCHEDULES).filter((name) => name !== 'reduceLROnPlateau'),
    ['rate', 'rateAfter'],
    'protected, or called by other schedules',
  ),
  ...methods(['cyclicLR'], ['height', 'momentum'], 'private or protected'),
  ...methods(['oneCycleLR'], ['at', 'momentum'], 'private or protected'),
  ...methods(['reduceLROnPlateau'], ['improves'], 'private'),
  ...methods(['batchNorm'], ['checkInput'], 'protected'),
  ...methods(['lstm'], ['run', 'runPacked', 'checkInput', 'layers', 'firstStates', 'suffixes', 'walk'], 'protected or private'),
  ...methods(['attention'], ['heads', 'extended', 'mask'], 'private'),
  'group.start': 'internal: collectives call it',
  'group.run': 'internal: collectives call it',
  'tensorfx.fx.math': 'the functions of JavaScript',
  'graph.tracerClass': 'a class, which is a setting of the graph',
  'graph.rename': 'internal',
  'graph.relist': 'internal',
  'graph.moveBefore': 'internal',
  'graph.formatNode': 'internal',
  'graph.isImpure': 'internal',
  'graphModule.cloneWith': 'internal',
  'graphModule.isImpureModule': 'internal',
  'graphModule.isImpureBody': 'internal',
  ...methods(
    ['interpreter', 'transformer'],
    ['runNode', 'placeholder', 'getAttr', 'callFunction', 'callMethod', 'callModule', 'output', 'fetchAttr', 'fetchArgsKwargs'],
    'overridden by subclasses, and called with what nodes hold',
  ),
  ...methods(
    ['tracer'],
    ['getattr', 'createProxy', 'createNode', 'createArg', 'traceBodies', 'getFreshQualname', 'untraced', 'createArgsForRoot', 'callModule'],
    'overridden by subclasses, and called while tracing',
  ),
  'dispatch.dispatch': 'takes normalized arguments',
  'dispatch.dispatchBelowAutograd': 'takes normalized arguments',
  'debug.runRepro': 'reads the command line, and ends the process',
  'debug.Isolator': 'starts processes',
  'debug.minifyBackendFailure': 'starts processes',
  'debug.workerHelper': 'starts a worker',
  'debug.serveWorker': 'listens to messages of the process',
  kernels: 'takes addresses that the caller owns, and parts of the loop IR, which compileKernel verifies as a whole',
}
