// torch.nn.utils.parametrize.
export { cached, isParametrized, ParametrizationList, registerParametrization, removeParametrizations } from './parametrize.ts'
export type { RemoveOptions } from './parametrize.ts'
