// CodeGen: the customizable parts of generated code. Subclass it to change the head, the return statement or the globals; codeWriter.ts writes the rest.
import { checkOptions } from '../../protocol/index.ts'
import type { BodyTransformer, GeneratedCode, GraphCodegen, WriteOptions } from '../graph/graphText.ts'
import type { NodeGraph } from '../graph/node.ts'
import { writeCode } from './codeWriter.ts'
import type { CodeStyle } from './codeWriter.ts'
import { writeHead } from './typeText.ts'
import type { HeadTypes } from './typeText.ts'

/**
 * Generates the code of graphs; PyTorch's torch.fx.graph.CodeGen. Pass an instance of a subclass to `graph.setCodegen`. `processInputs` and `processOutputs` must
 * do to values what the generated code does to inputs and outputs: the compiled function returns `processOutputs(graph(...processInputs(inputs)))`.
 */
export class CodeGen implements CodeStyle, GraphCodegen {
  /** Rewrites the lines of the body. See Graph.onGenerateCode. */
  bodyTransformer: BodyTransformer | null = null

  /** The name of the function in the source. */
  get functionName(): string {
    return 'forward'
  }

  /** The line or lines that open the function, with types unless `types` is null. PyTorch's gen_fn_def. */
  functionHead(parameters: readonly string[], types: HeadTypes | null = null): string {
    return writeHead(this.functionName, parameters, types)
  }

  /** The statement that returns `value`, which is source text. PyTorch's generate_output. */
  returnStatement(value: string): string {
    return `return ${value}`
  }

  /** Globals that the head or the return statement refer to: names and values. */
  additionalGlobals(): readonly (readonly [string, unknown])[] {
    return []
  }

  /** Names that the head uses, which no variable of the function may take. */
  reservedNames(): readonly string[] {
    return []
  }

  /** The values of the placeholders for these arguments of the compiled function. */
  processInputs(inputs: readonly unknown[]): readonly unknown[] {
    return inputs
  }

  /** What the compiled function returns for this value of the output node. */
  processOutputs(output: unknown): unknown {
    return output
  }

  /** A copy for a copied graph. A transformer that is registered on the copy later does not affect the original, and vice versa. */
  clone(): CodeGen {
    return Object.assign(Object.create(Object.getPrototypeOf(this)), this)
  }

  /** Generates the code. */
  generate(graph: NodeGraph, options: WriteOptions = {}): GeneratedCode {
    checkOptions('generateCode', options, {
      verbose: 'boolean',
      includeModule: 'boolean',
      types: true,
      colored: 'boolean',
      includeStride: 'boolean',
      includeDevice: 'boolean',
    })
    return writeCode(this, graph, options)
  }
}
