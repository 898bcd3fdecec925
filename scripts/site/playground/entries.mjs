// The entries of the package that run in a browser, by the names under which programs import them.
import * as tensorfx from '../../../dist/index.js'
import * as aot from '../../../dist/entries/aot.js'
import * as autograd from '../../../dist/entries/autograd.js'
import * as core from '../../../dist/entries/core.js'
import * as checkpoint from '../../../dist/entries/checkpoint.js'
import * as compile from '../../../dist/entries/compile.js'
import * as debug from '../../../dist/entries/debug.js'
import * as trace from '../../../dist/entries/debug/trace.js'
import * as dispatch from '../../../dist/entries/dispatch.js'
import * as func from '../../../dist/entries/func.js'
import * as distributions from '../../../dist/entries/distributions.js'
import * as fx from '../../../dist/entries/fx.js'
import * as experimental from '../../../dist/entries/fx/experimental.js'
import * as gradualTypes from '../../../dist/entries/fx/experimental/migrateGradualTypes.js'
import * as unification from '../../../dist/entries/fx/experimental/unification.js'
import * as json from '../../../dist/entries/fx/json.js'
import * as passes from '../../../dist/entries/fx/passes.js'
import * as viewer from '../../../dist/entries/fx/viewer.js'
import * as inductor from '../../../dist/entries/inductor.js'
import * as interop from '../../../dist/entries/interop.js'
import * as onnx from '../../../dist/entries/interop/onnx.js'
import * as kernels from '../../../dist/entries/kernels.js'
import * as library from '../../../dist/entries/library.js'
import * as nn from '../../../dist/entries/nn.js'
import * as ops from '../../../dist/entries/ops.js'
import * as optim from '../../../dist/entries/optim.js'
import * as pytree from '../../../dist/entries/pytree.js'
import * as rewriter from '../../../dist/entries/rewriter.js'
import * as webgpu from '../../../dist/entries/webgpu.js'
import * as models from '../../../dist/entries/models.js'
import * as train from '../../../dist/entries/train.js'
import * as vision from '../../../dist/entries/vision.js'
import * as data from '../../../dist/entries/data.js'

export const ENTRIES = {
  tensorfx,
  'tensorfx/aot': aot,
  'tensorfx/autograd': autograd,
  'tensorfx/checkpoint': checkpoint,
  'tensorfx/compile': compile,
  'tensorfx/core': core,
  'tensorfx/data': data,
  'tensorfx/debug': debug,
  'tensorfx/debug/trace': trace,
  'tensorfx/dispatch': dispatch,
  'tensorfx/distributions': distributions,
  'tensorfx/func': func,
  'tensorfx/fx': fx,
  'tensorfx/fx/experimental': experimental,
  'tensorfx/fx/experimental/migrateGradualTypes': gradualTypes,
  'tensorfx/fx/experimental/unification': unification,
  'tensorfx/fx/json': json,
  'tensorfx/fx/passes': passes,
  'tensorfx/fx/viewer': viewer,
  'tensorfx/inductor': inductor,
  'tensorfx/interop': interop,
  'tensorfx/interop/onnx': onnx,
  'tensorfx/kernels': kernels,
  'tensorfx/library': library,
  'tensorfx/nn': nn,
  'tensorfx/ops': ops,
  'tensorfx/optim': optim,
  'tensorfx/pytree': pytree,
  'tensorfx/rewriter': rewriter,
  'tensorfx/train': train,
  'tensorfx/models': models,
  'tensorfx/vision': vision,
  'tensorfx/webgpu': webgpu,
}
