// The problems of every schedule, for tests that take all of them.
import { attendBackwardProblem, attendProblem, beginPiecesProblem, endPiecesProblem, packKeysProblem, packValuesProblem } from './attention.ts'
import { directProblem, fastWinogradProblem, gatheredProblem, winogradProblem } from './convolutions.ts'
import { pointwiseProblem, transposeProblem } from './nests.ts'
import type { DrawProblem } from './problem.ts'
import { gemmProblem, skinnyAcrossProblem, skinnyAlongProblem, unpackedProblem } from './products.ts'
import { resampleProblem } from './resample.ts'
import { directWeightProblem, winogradWeightProblem } from './weightGradients.ts'

/** The problems of each schedule, and of each function that builds a kernel. */
export const problemsOf: Readonly<Record<string, DrawProblem>> = {
  ...{ attend: attendProblem, beginPieces: beginPiecesProblem, endPieces: endPiecesProblem, attendBackward: attendBackwardProblem },
  ...{ packKeys: packKeysProblem, packValues: packValuesProblem },
  ...{ gemm: gemmProblem, unpackedProduct: unpackedProblem, skinnyAlong: skinnyAlongProblem, skinnyAcross: skinnyAcrossProblem },
  ...{ direct: directProblem, winograd: winogradProblem, fastWinograd: fastWinogradProblem, winogradWeight: winogradWeightProblem },
  ...{ directWeight: directWeightProblem, gathered: gatheredProblem },
  ...{ transpose: transposeProblem, pointwiseKernel: pointwiseProblem, resample: resampleProblem },
}
