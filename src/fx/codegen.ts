// CodeGen: how the code of a graph looks. Subclass it to change the head, the return statement or the globals; codeWriter.ts does the writing.
import { writeCode } from './codeWriter.ts'
import type { WriteOptions } from './codeWriter.ts'
import { writeHead } from './functionHead.ts'
import type { HeadTypes } from './functionHead.ts'
import type { GeneratedCode } from './generatedCode.ts'
import type { Graph } from './graph.ts'

/** Rewrites the lines of generated code before they are compiled. */
export type BodyTransformer = (body: readonly string[]) => readonly string[]

/**
 * Writes the code of graphs; PyTorch's torch.fx.graph.CodeGen. Give a subclass to `graph.setCodegen`. What it does to inputs and outputs in code,
 * `processInputs` and `processOutputs` do to values: `processOutputs(graph(...processInputs(inputs)))` is what the compiled function returns.
 */
export class CodeGen {
  /** Rewrites the lines of the body; see Graph.onGenerateCode. */
  bodyTransformer: BodyTransformer | null = null

  /** Name of the function in the source. */
  get functionName(): string {
    return 'forward'
  }

  /** The line (or lines) that open the function; with types where they were asked for. PyTorch's gen_fn_def. */
  functionHead(parameters: readonly string[], types: HeadTypes | null = null): string {
    return writeHead(this.functionName, parameters, types)
  }

  /** The statement that returns `value` (source text). PyTorch's generate_output. */
  returnStatement(value: string): string {
    return `return ${value}`
  }

  /** Names that the head or the return statement refer to, with their values. */
  additionalGlobals(): readonly (readonly [string, unknown])[] {
    return []
  }

  /** Names that the head uses for itself: no variable of the function takes them. */
  reservedNames(): readonly string[] {
    return []
  }

  /** The inputs of the compiled function -> the values of the placeholders. */
  processInputs(inputs: readonly unknown[]): readonly unknown[] {
    return inputs
  }

  /** The value of the output node -> what the compiled function returns. */
  processOutputs(output: unknown): unknown {
    return output
  }

  /** A copy for a copied graph: with the same properties, so that a transformer registered on one is not heard by the other. */
  clone(): CodeGen {
    return Object.assign(Object.create(Object.getPrototypeOf(this) as object) as CodeGen, this)
  }

  /** Writes the code. `verbose` adds the user's lines and what is known of the values as comments. */
  generate(graph: Graph, options: WriteOptions = {}): GeneratedCode {
    return writeCode(this, graph, options)
  }
}
