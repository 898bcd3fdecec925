// The registry of templates.
import type { OpCall } from '../opCall.ts'
import { convolution, inputGradient, weightGradient } from './convolution.ts'
import { linear, matmul } from './matmul.ts'
import type { BoundTemplate, Template, ViewOf } from './template.ts'

/** Tried from last to first, so that registered templates take precedence over built-in ones. */
const templates: Template[] = [matmul, linear, convolution, inputGradient, weightGradient]

const ours = templates.length

/** Whether a program has added templates, whose code is not known. */
export const hasUsersTemplates = (): boolean => templates.length > ours

/** Adds a template, which takes precedence over the present ones. Returns a function that removes it. Graphs that are already compiled do not change. */
export function registerTemplate(template: Template): () => void {
  templates.push(template)
  return () => {
    const at = templates.indexOf(template)
    if (at >= 0) templates.splice(at, 1)
  }
}

/** The template for a call, bound to it; null when there is none. */
export function templateFor(call: OpCall, viewOf: ViewOf): BoundTemplate | null {
  if (call.hasSymbols) return null
  for (const template of templates.toReversed()) {
    const bound = template.ops.includes(call.op) ? template.bind(call, viewOf) : null
    if (bound !== null) return bound
  }
  return null
}
