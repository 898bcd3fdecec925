// From generated code to a function of the engine, under a file name of its own and with a map to the user's program.
import { GraphError } from './errors.ts'
import type { GeneratedCode } from './generatedCode.ts'
import { sourceMapComment } from './sourceMap.ts'

/** A compiled function, to be called with the module as `this`. */
export type Forward = (this: unknown, ...args: readonly unknown[]) => unknown

/** A compiled function, and the file name that stands in the stacks of its errors. */
export interface CompiledCode {
  readonly forward: Forward
  readonly file: string
}

/**
 * Compiles generated code. `name` and `sourceHint`, the place of the traced program, give the file its name. Throws GraphError with the code where that is no
 * JavaScript: a transformer or code generator of the user's may have written it.
 */
export function compileCode(code: GeneratedCode, name: string, sourceHint: string | null): CompiledCode {
  const file = fileName(name, sourceHint)
  // In parentheses the engine compiles the function at once, instead of skimming it now and compiling it at the first call.
  const prefix = `(function (${[...code.globals.keys()].join(', ')}) { return (${code.source}\n)})`
  try {
    // Indirect eval: generated code sees its own globals only, and its lines keep their numbers.
    // oxlint-disable-next-line no-eval -- this is what a code generator is for
    const make = (0, eval)(`${prefix}\n//# sourceURL=${file}${sourceMapComment(code)}`) as (...values: readonly unknown[]) => Forward
    return { forward: make(...code.globals.values()), file }
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    throw new GraphError(`the generated code of ${name} is no JavaScript: ${cause.message}\n${code.source}`, { cause })
  }
}

let compiled = 0

/** The name under which engines and debuggers know the function: it says where the traced program stands. */
function fileName(name: string, sourceHint: string | null): string {
  const plain = (text: string): string => text.replace(/[^\w.$-]/g, '_')
  const place = sourceHint === null ? '' : `${plain(sourceHint.replace(/ in .*$/, '').replace(/^.*[\\/]/, ''))}/`
  return `tensorfx-generated/${place}${plain(name)}_${compiled++}.js`
}
