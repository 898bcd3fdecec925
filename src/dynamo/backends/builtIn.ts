// The backends that need no code generator, and those that fail on purpose, to try the debugger with.
import { decomposeGraph } from '../../aot/index.ts'
import { TensorfxError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { add, relu, relu_ } from '../../ops/index.ts'
import { nameTarget } from '../../protocol/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import type { Backend, Entry } from './backend.ts'

/**
 * A relu was found in the graph: what `relu_compile_error_TESTING_ONLY` throws. PyTorch's ReluCompileError.
 *
 * Fix: none is needed: the backend fails on purpose, to try the debugger. Compile with another backend.
 */
export class ReluCompileError extends TensorfxError {
  constructor() {
    super('TFX_RELU_COMPILE', 'relu found in graph')
  }
}

/**
 * A kernel that failed at run time, as `relu_runtime_error_TESTING_ONLY` makes it.
 *
 * Fix: none is needed: the backend fails on purpose, to try the debugger. Compile with another backend.
 */
export class ReluRuntimeError extends TensorfxError {
  constructor() {
    super('TFX_RELU_RUNTIME', 'ReluRuntimeError')
  }
}

const isRelu = (node: { op: string; target: unknown }): boolean =>
  (node.op === 'call_function' && (node.target === relu || node.target === relu_)) || (node.op === 'call_method' && node.target === 'relu')

const run =
  (gm: GraphModule): ((...inputs: never[]) => unknown) =>
  (...inputs) =>
    gm.forward(...inputs)

/** The backend `eager`: runs graphs as they are, for any sizes. */
export const eagerBackend: Backend = run

/** Always throws; stands for a kernel that fails at run time. */
const reluRuntimeError = nameTarget(
  function reluRuntimeError(_x: Tensor): Tensor {
    throw new ReluRuntimeError()
  },
  { name: 'torch.ops.testing.relu_runtime_error' },
)

/** relu with a result that is wrong by 1. */
const reluAccuracyError = nameTarget(
  function reluAccuracyError(x: Tensor): Tensor {
    return add(relu(x), 1)
  },
  { name: 'torch.ops.testing.relu_accuracy_error' },
)

function withRelu(replacement: (x: Tensor) => Tensor): Backend {
  return (gm) => {
    const copy = gm.deepCopy({ shareTensors: true })
    for (const node of copy.graph.nodes) {
      if (!isRelu(node)) continue
      node.op = 'call_function'
      node.target = replacement
    }
    copy.recompile()
    return run(copy)
  }
}

/** The backends that need no code generator, and the test backends that fail on purpose. */
export const defaultBackends: Readonly<Record<string, Entry>> = {
  eager: { backend: eagerBackend, options: {} },
  // Forward and backward graphs in primitive operators, on eager kernels: a failure that occurs here too is not in the code generator.
  aot_eager: { backend: (gm) => run(decomposeGraph(gm)), options: { staticShapes: true } },
  relu_compile_error_TESTING_ONLY: {
    backend: (gm) => {
      for (const node of gm.graph.nodes) if (isRelu(node)) throw new ReluCompileError()
      return run(gm)
    },
    options: { tags: ['debug'] },
  },
  relu_runtime_error_TESTING_ONLY: { backend: withRelu(reluRuntimeError), options: { tags: ['debug'] } },
  relu_accuracy_error_TESTING_ONLY: { backend: withRelu(reluAccuracyError), options: { tags: ['debug'] } },
}
