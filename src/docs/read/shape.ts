// What other modules can see of a module: everything but the bodies of functions that say what they return. While it stays the same, the modules that import it need not be read again.
import type * as ts from 'typescript6'
import type { Compiler } from '../compiler.ts'
import { isJavaScript } from './program.ts'
import { hashOf } from './tokens.ts'
import type { Tokens } from './tokens.ts'

/** The hash of what other modules can see of a file. In JavaScript that is all of it: types are in comments there, and methods declare fields. */
export function shapeOf(ts: Compiler, file: ts.SourceFile, tokens: Tokens): string {
  if (isJavaScript(file)) return hashOf(file.text)
  const bodies: (readonly [start: number, end: number])[] = []
  const visit = (node: ts.Node): void => {
    const body = bodyOf(ts, node)
    if (body === undefined) ts.forEachChild(node, visit)
    else bodies.push([body.getStart(file), body.end])
  }
  visit(file)
  return tokens.hashWithout(bodies)
}

/** The body of a function on which its type does not depend. Those of constructors stay, since the codes of errors are in them. */
function bodyOf(ts: Compiler, node: ts.Node): ts.Node | undefined {
  if (ts.isSetAccessor(node)) return node.body
  const isFunction =
    ts.isFunctionDeclaration(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isGetAccessor(node) ||
    ts.isArrowFunction(node) ||
    ts.isFunctionExpression(node)
  return isFunction && node.type !== undefined ? node.body : undefined
}

/** Whether a module of this text may declare something for modules that do not import it. */
export const isAmbient = (text: string): boolean =>
  /\bdeclare\s+(?:global\b|module\s*['"])/.test(text) || !/^\s*(?:import|export)\b|\b(?:require|exports)\b/m.test(text)
