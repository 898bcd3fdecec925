// The interface through which graphs print and generate code. The text wing implements it and the composition root installs the implementation, so that the
// graph wing does not import the text wing.
import { InternalError } from '../../errors/index.ts'
import type { Node, NodeGraph } from './node.ts'

/** What a comment says about a tensor besides its shape and dtype. */
export interface SpecOptions {
  /** Show strides, `f32[2, 3][3, 1]`. Default: whether the environment sets TENSORFX_FX_GRAPH_SHOW_STRIDE=1. */
  readonly includeStride?: boolean
  /** Show devices, `f32[2, 3]cpu`. Default: whether the environment sets TENSORFX_FX_GRAPH_SHOW_DEVICE=1. */
  readonly includeDevice?: boolean
}

/** How generated code states types: as TypeScript annotations, or in a JSDoc comment above the function. */
export type TypeStyle = 'typescript' | 'jsdoc'

/** Options of code generation. */
export interface WriteOptions extends SpecOptions {
  /** Add comments: the user's lines, and the shapes and dtypes that the nodes' meta holds. Default false. */
  readonly verbose?: boolean
  /** With `verbose`: add a comment wherever the module that recorded the nodes changes, `// Module: layer1.0 (BasicBlock)`. Default false. */
  readonly includeModule?: boolean
  /** State the known types of parameters, variables and results. For reading only; the compiled code has none. Default: no types. */
  readonly types?: TypeStyle
  /** Colour the comments for terminals. Default false. */
  readonly colored?: boolean
}

/** A source map, version 3. */
export interface SourceMap {
  readonly version: 3
  readonly sources: readonly string[]
  readonly names: readonly string[]
  readonly mappings: string
}

/** The generated function; PyTorch's PythonCode. */
export interface GeneratedCode {
  /** `function forward(x) { … }`, without trailing newline. */
  readonly source: string
  /** The names that the source refers to besides its parameters, and their values. */
  readonly globals: ReadonlyMap<string, unknown>
  /** The number of lines of `source`. */
  readonly lineCount: number
  /** The node that a line (from 1) computes; null if there is none. */
  nodeAt(line: number): Node | null
  /** From line of `source` (from 1) to node. PyTorch's _lineno_map. */
  readonly lineMap: ReadonlyMap<number, Node>
  /** Maps lines to the user's program, for debuggers; null if the origin of no line is known. */
  readonly sourceMap: SourceMap | null
}

/** Rewrites the lines of generated code before they are compiled. */
export type BodyTransformer = (body: readonly string[]) => readonly string[]

/** What a graph needs of its code generator; class CodeGen implements it. */
export interface GraphCodegen {
  /** Rewrites the lines of the body; see Graph.onGenerateCode. */
  bodyTransformer: BodyTransformer | null
  /** Generates the code. */
  generate(graph: NodeGraph, options?: WriteOptions): GeneratedCode
  /** The values of the placeholders for these arguments of the compiled function. */
  processInputs(inputs: readonly unknown[]): readonly unknown[]
  /** What the compiled function returns for this value of the output node. */
  processOutputs(output: unknown): unknown
  /** A copy for a copied graph. */
  clone(): GraphCodegen
}

/** An additional column of `graph.printTabular`: its title, and the text of a node's cell. */
export type TableColumn = readonly [title: string, cell: (node: Node) => string]

/** Everything that graphs need of the text wing. */
export interface GraphText {
  /** The code generator of a new graph. */
  newCodegen(): GraphCodegen
  /** Whether a value is a code generator. */
  isCodegen(value: unknown): boolean
  /** The line of one node. */
  formatNode(node: Node): string
  /** The whole graph, one line per node. */
  formatGraph(graph: NodeGraph): string
  /** The nodes as a table. */
  formatTabular(graph: NodeGraph, extra?: readonly TableColumn[]): string
}

let installed: GraphText | null = null

/** Sets the implementation; the composition root calls it. */
export function installGraphText(text: GraphText): void {
  installed = text
}

/** The implementation. Throws InternalError if none is installed. */
export function graphText(): GraphText {
  if (installed === null) throw new InternalError('the text wing of fx is not installed; import an entry of the package')
  return installed
}
