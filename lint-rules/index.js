// tensorfx/lint-rules: rules for ESLint and oxlint that find operations on tensors that no tracer can notice. No dependencies, no types.
import { findings } from './findings.js'

/** A rule that reports the findings of one kind. `advice`: what to write instead; `sizes`: it also speaks of sizes. */
function rule(kind, description, advice, sizeAdvice) {
  return {
    meta: {
      type: 'problem',
      docs: { description },
      messages: { tensor: `{{what}}. ${advice}`, size: `{{what}}. ${sizeAdvice}` },
      schema: [{ type: 'object', properties: { sizes: { type: 'boolean' } }, additionalProperties: false }],
    },
    create(context) {
      const sizes = context.options?.[0]?.sizes === true
      return {
        Program(program) {
          for (const { kind: found, node, text, size, symbolic } of findings(program)) {
            if (found !== kind || (size && !sizes && !symbolic)) continue
            context.report({ node, messageId: size ? 'size' : 'tensor', data: { what: text } })
          }
        },
      }
    },
  }
}

const SIZE_ADVICE =
  'symbolicTrace does not know sizes: fix the argument with concreteArgs, read the size of a parameter (this.weight.shape is known), or use compile().'

const plugin = {
  meta: { name: 'tensorfx', version: '0.1.0' },
  rules: {
    'no-tensor-condition': rule(
      'condition',
      'Tensors as conditions: if, while, ?:, !, &&, ||, Boolean()',
      'Compute both sides and select, torch.where(condition, a, b), or read the value: condition.item() (a graph break in compile, an error in symbolicTrace).',
      SIZE_ADVICE,
    ),
    'no-tensor-equality': rule(
      'equality',
      'Tensors compared by identity: ===, !==, ==, !=, switch',
      'Compare values with a.eq(b), or all of them with torch.equal(a, b).',
      SIZE_ADVICE,
    ),
    'no-tensor-operator': rule(
      'operator',
      "Tensors as operands of JavaScript's operators",
      'Write x.add(y), x.mul(2), x.neg(), x.gt(0).',
      SIZE_ADVICE,
    ),
    'no-tensor-typeof': rule(
      'typeof',
      'Type tests of tensors: typeof, instanceof, Array.isArray',
      'Use another condition: a setting of the module, or an argument that concreteArgs fixes.',
      SIZE_ADVICE,
    ),
    'no-tensor-key': rule(
      'key',
      'Tensors as keys: table[t], { [t]: 1 }, t in table',
      'Write table[t.item()] for a tensor with one element, x.getitem(t) to index a tensor, or use a Map whose keys are the tensors themselves.',
      SIZE_ADVICE,
    ),
  },
  configs: {},
}

plugin.configs.recommended = {
  plugins: { tensorfx: plugin },
  rules: Object.fromEntries(Object.keys(plugin.rules).map((name) => [`tensorfx/${name}`, 'error'])),
}

export default plugin
