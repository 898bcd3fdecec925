// What a backend is, and what one returns.
import type { CompiledCode } from '../../aot/index.ts'
import { ArgumentError } from '../../errors/index.ts'
import type { GraphModule, Node } from '../../fx/index.ts'
import { isCallable, valueText } from '../../protocol/index.ts'
import type { Tensor, TensorSpec } from '../../tensor/index.ts'

/** A function that a backend returns: it takes one value per placeholder. inductor's also carries reports. */
export interface BackendCode extends Pick<CompiledCode, 'kernels' | 'writtenInPlace' | 'isProgram'> {
  (...inputs: never[]): unknown
}

/** What compiled code, or a graph, has returned, as a list of results. */
export const resultsOf = (returned: unknown): readonly unknown[] => (Array.isArray(returned) ? returned : [returned])

/**
 * Compiles a graph: takes it and example inputs (one per placeholder: tensors, or numbers), and returns what computes it. `(gm) => gm` and `(gm) => gm.forward` run
 * the graph as it is.
 */
export interface Backend {
  (gm: GraphModule, exampleInputs: readonly unknown[]): BackendCode
  /** Whether what it returns is for the shapes of the example inputs only. Otherwise `compile(fn, { dynamic: true })` calls it with graphs that have sizes among their inputs, as numbers. */
  readonly staticShapes?: boolean
  /** The same for programs that can only await results, as a page awaits those of WebGPU. `compareBackends` and its minifier call it in place of the backend. */
  readonly compileAsync?: CompileAsync
}

/** Compiles a graph to code whose results are awaited. */
export type CompileAsync = (
  gm: GraphModule,
  exampleInputs: readonly unknown[],
) => Promise<(...inputs: readonly unknown[]) => Promise<readonly unknown[]>>

/** What a backend says of itself when it is registered. */
export interface BackendOptions {
  /** URL of a module that registers the backend when imported (`import.meta.url`): isolated processes import it. */
  readonly module?: string
  /** 'debug' backends are left out of listBackends(). */
  readonly tags?: readonly string[]
  /** As {@link Backend.staticShapes}. */
  readonly staticShapes?: boolean
}

/** What a backend returned, as a function of any inputs. Throws ArgumentError if it is neither a function nor a GraphModule. */
export function runnable(compiled: BackendCode): (...inputs: readonly unknown[]) => unknown {
  if (!isCallable(compiled))
    throw new ArgumentError(
      `compiler_fn did not return callable: a backend must return a function of the graph's inputs or a GraphModule, got ${valueText(compiled)}.`,
    )
  // The types that a backend declares for its inputs are its own affair: it gets one value per placeholder.
  return compiled as (...inputs: readonly unknown[]) => unknown
}

/** What is known of an input of a graph: the layout of a tensor, a size as a number, or a number that differs from call to call and is no size. */
export type InputSample =
  | { readonly kind: 'tensor'; readonly spec: Required<Pick<TensorSpec, 'shape' | 'dtype' | 'strides'>> }
  | { readonly kind: 'size'; readonly value: number }
  | { readonly kind: 'scalar'; readonly value: number }

/** A kernel for any sizes in the place of several nodes. */
export interface FusedUnit {
  /** Computes the values of `outputs` from those of `inputs`; null if it is not for such inputs. */
  readonly kernel: {
    readonly run: (inputs: readonly unknown[]) => readonly Tensor[] | null
    /** From results that may lie in the memory of an input, if both are contiguous, to that input. */
    readonly overwrites?: ReadonlyMap<number, number>
  }
  readonly inputs: readonly Node[]
  readonly outputs: readonly Node[]
  /** All nodes that it computes. */
  readonly computed: ReadonlySet<Node>
}

/** Finds kernels for any sizes in a graph with sizes. Returns what runs, in order: nodes, and kernels in the place of nodes. `a`, `b`: two samples of its inputs. */
export type FuseForSizes = (gm: GraphModule, a: readonly InputSample[], b: readonly InputSample[]) => readonly (Node | FusedUnit)[]

/** A registered backend. */
export interface Entry {
  readonly backend: Backend
  readonly options: BackendOptions
  /** For graphs with sizes that the backend itself cannot have. */
  readonly fuseForSizes?: FuseForSizes
}
