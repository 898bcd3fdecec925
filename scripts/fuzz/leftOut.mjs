// What fuzz:arguments leaves out, each with the reason.
import { OPTIMIZERS, SCHEDULES } from './surface.mjs'

/** Methods of samples. */
const methods = (samples, names, reason) => Object.fromEntries(samples.flatMap((of) => names.map((name) => [`${of}.${name}`, reason])))

/** What the fuzzer does not call, and why: names, or starts of names; `new X` leaves out the constructor alone. */
export const LEFT_OUT = {
  'tensorfx.Tensor': 'internal: tensors are made by torch.tensor and the like',
  'tensorfx.torch.autograd.Function.forward': 'overridden by the user',
  'tensorfx.torch.autograd.Function.backward': 'overridden by the user',
  'tensorfx.torch.ops.higher_order': 'what graphs record; programs call cond, whileLoop, scan and map',
  'new autograd.FunctionContext': 'internal: made when a Function is applied',
  'new distributed.ProcessGroup': 'internal: made by newGroup',
  'new distributed.ShardedTensor': 'internal: made by chunk and fromLocalShards',
  'new debug.BackendComparison': 'internal: made by compareBackends',
  'new distributed.Work': 'internal: made by collectives',
  'distributed.runRanks': 'starts threads',
  'tensorfx.optim.Optimizer': 'abstract: its subclasses check',
  ...methods(
    ['sgd', ...Object.keys(OPTIMIZERS)],
    ['checkGroup', 'checkAtLeast0', 'checkBetas', 'checkOption', 'update', 'stateOf', 'shapeOfState'],
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
  ...methods(['lstm'], ['run', 'firstStates', 'suffixes', 'walk'], 'protected or private'),
  ...methods(['attention'], ['heads', 'mask'], 'private'),
  'group.start': 'internal: collectives call it',
  'fx_viewer.renderSvg': 'passes a text on to Graphviz, whose error says what is wrong with it',
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
  ...Object.fromEntries(
    ['cse', 'deadCode', 'legalize', 'mergeAttributeReads', 'unusedSubmodules'].map((name) => [`fx_passes.${name}.run`, 'called by runPasses']),
  ),
  'dispatch.dispatch': 'takes normalized arguments',
  'dispatch.dispatchBelowAutograd': 'takes normalized arguments',
  'debug.runRepro': 'reads the command line, and ends the process',
  'debug.Isolator': 'starts processes',
  'debug.minifyBackendFailure': 'starts processes',
  'debug.workerHelper': 'starts a worker',
  'debug.serveWorker': 'listens to messages of the process',
  'debug.setFileStore': 'replaces where files are written',
  'debug.fileStore': 'writes files',
  'debug.InputReader': 'reads files',
  'debug.InputWriter': 'writes files',
  'debug.setLogSink': 'replaces where logs go',
  kernels: 'takes addresses that the caller owns, and parts of the loop IR, which compileKernel verifies as a whole',
}
