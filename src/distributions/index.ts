// Probability distributions: samples with and without gradients, densities, entropies, divergences. PyTorch's torch.distributions.
export * as constraints from './constraints.ts'
export type { Constraint } from './constraints.ts'
export { Distribution, setDefaultValidateArgs } from './distribution.ts'
export type { DistributionFacts, DistributionOptions, Parameter, SampleOptions } from './distribution.ts'
export { Cauchy, Exponential, Gumbel, HalfNormal, Laplace, Normal, Uniform } from './normal.ts'
export { Beta, Chi2, Dirichlet, Gamma, StudentT } from './gamma.ts'
export { Bernoulli, Binomial, Geometric, Poisson } from './discrete.ts'
export type { ProbabilityOptions } from './probabilities.ts'
export { Categorical, OneHotCategorical } from './categorical.ts'
export { MultivariateNormal } from './multivariateNormal.ts'
export type { MultivariateNormalOptions } from './multivariateNormal.ts'
export { Independent, LogNormal, TransformedDistribution } from './transformed.ts'
export { ComposeTransform, IndependentTransform, InverseTransform, Transform } from './transform.ts'
export {
  AbsTransform,
  AffineTransform,
  CumulativeDistributionTransform,
  ExpTransform,
  PowerTransform,
  SigmoidTransform,
  SoftplusTransform,
  TanhTransform,
} from './elementTransforms.ts'
export {
  CatTransform,
  CorrCholeskyTransform,
  LowerCholeskyTransform,
  ReshapeTransform,
  SoftmaxTransform,
  StackTransform,
  StickBreakingTransform,
} from './vectorTransforms.ts'
export { klDivergence, registerKl } from './klRules.ts'
export type { DistributionClass } from './kl.ts'
