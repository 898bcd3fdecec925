// nn.functional, nn.init and nn.utils as users get them: they explain names that they do not have.
import { camelCase, explainUnknownNames } from '../protocol/index.ts'
import * as functions from './functional.ts'
import * as initial from './init.ts'
import * as tools from './utils.ts'

const namespace = <T extends object>(owner: string, members: T, instead: Readonly<Record<string, string>> = {}): T =>
  explainUnknownNames({ ...members }, { owner, known: () => Object.keys(members), instead: new Map(Object.entries(instead)) })

const WITH_INDICES = Object.fromEntries(
  ['max_pool', 'adaptive_max_pool', 'fractional_max_pool'].flatMap((name) =>
    [1, 2, 3].map((n) => [`${name}${n}d_with_indices`, `write ${camelCase(name)}${n}d(x, …, { returnIndices: true })`]),
  ),
)

/** What layers compute, as functions. PyTorch's `torch.nn.functional`. */
export const functional: typeof functions = /* @__PURE__ */ namespace('nn.functional', functions, {
  ...WITH_INDICES,
  gumbel_softmax: 'there is no gumbelSoftmax here yet',
  multi_head_attention_forward: 'write new nn.MultiheadAttention(…), or nn.functional.scaledDotProductAttention',
})

/** Initial values of parameters, in place. PyTorch's `torch.nn.init`. */
export const init: typeof initial = /* @__PURE__ */ namespace('nn.init', initial, { eye: 'write nn.init.eye_(x)' })

/** Clipping, vectors of parameters, packed sequences, parametrizations and pruning. PyTorch's `torch.nn.utils`. */
export const utils: typeof tools = /* @__PURE__ */ namespace('nn.utils', tools, {
  clip_grad: 'write nn.utils.clipGradNorm_(parameters, maxNorm)',
  clip_grad_norm: 'write nn.utils.clipGradNorm_(parameters, maxNorm)',
  convert_parameters: 'write nn.utils.parametersToVector(parameters)',
  init: "write import { nn } from 'tensorfx' and nn.init",
  stateless: "write import { functionalCall } from 'tensorfx/func'",
  skip_init: 'there is no skipInit here: loadStateDict overwrites the initial values',
  memory_format: 'leave it out: x.contiguous({ memoryFormat }) is for single tensors',
  convert_conv2d_weight_memory_format: 'leave it out: x.contiguous({ memoryFormat }) is for single tensors',
  fuse_conv_bn_eval: 'write nn.utils.fusion.fuseConvBnEval(conv, bn)',
  fuse_conv_bn_weights: 'write nn.utils.fusion.fuseConvBnWeights(…)',
  remove_spectral_norm: "write nn.utils.parametrize.removeParametrizations(module, 'weight')",
  remove_weight_norm: "write nn.utils.parametrize.removeParametrizations(module, 'weight')",
})
