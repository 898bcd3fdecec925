// torch.nn.utils.parametrize.
export { isParametrized, ParametrizationList, registerParametrization, removeParametrizations } from './parametrize.ts'
