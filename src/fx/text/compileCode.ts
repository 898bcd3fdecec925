// Compiles generated code to a function, under its own file name and with a source map to the user's program.
import { GraphError } from '../graph/errors.ts'
import type { GeneratedCode } from '../graph/graphText.ts'
import { sourceMapComment } from './sourceMap.ts'

/** A compiled function. Call it with the module as `this`. */
export type Forward = (this: unknown, ...args: readonly unknown[]) => unknown

/** A compiled function, and its file name in stack traces. */
export interface CompiledCode {
  readonly forward: Forward
  readonly file: string
}

/**
 * Compiles generated code. The file name is made from `name` and `sourceHint`, which tells where the traced program is defined. Throws GraphError, with the code,
 * if it is not valid JavaScript, which can happen with the user's own transformers and code generators.
 */
export function compileCode(code: GeneratedCode, name: string, sourceHint: string | null): CompiledCode {
  const file = fileName(name, sourceHint)
  // The parentheses make the engine compile the function now, instead of preparsing it now and compiling it at the first call.
  const prefix = `(function (${[...code.globals.keys()].join(', ')}) { return (${code.source}\n)})`
  try {
    // Indirect eval: the code sees only its own globals, and its lines keep their numbers (new Function would shift them).
    // oxlint-disable-next-line no-eval -- compiling generated code is the purpose of this file
    const make: (...values: readonly unknown[]) => Forward = (0, eval)(`${prefix}\n//# sourceURL=${file}${sourceMapComment(code)}`)
    return { forward: make(...code.globals.values()), file }
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    throw new GraphError(`the generated code of ${name} is not valid JavaScript: ${cause.message}\n${code.source}`, { cause })
  }
}

let compiled = 0

/** The file name that engines and debuggers show. It tells where the traced program is defined. */
function fileName(name: string, sourceHint: string | null): string {
  const plain = (text: string): string => text.replace(/[^\w.$-]/g, '_')
  const place = sourceHint === null ? '' : `${plain(sourceHint.replace(/ in .*$/, '').replace(/^.*[\\/]/, ''))}/`
  return `tensorfx-generated/${place}${plain(name)}_${compiled++}.js`
}
