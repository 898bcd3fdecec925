// Which convolutions Winograd's algorithms compute, and what a schedule of them is made of.
import type { ConvolutionProblem, ConvolutionSizes } from './convolution.ts'
import type { Schedule } from './schedule.ts'
import { F23, F43 } from './winogradTransforms.ts'
import type { WinogradAlgorithm } from './winogradTransforms.ts'

/** With fewer channels or tiles the transforms cost what the products save; of smaller planes, tiles reach too far beyond the edge. */
const LEAST_CHANNELS = 16
const LEAST_PLANE = 4
const LEAST_TILES = 8

/** Tiles of an image. */
export const tilesOf = ({ outHeight, outWidth }: ConvolutionSizes, side: number): number => Math.ceil(outHeight / side) * Math.ceil(outWidth / side)

/** Whether an algorithm computes such a convolution, and gains something. */
const takes = ({ side }: WinogradAlgorithm, s: ConvolutionSizes): boolean =>
  s.kernelHeight === 3 &&
  s.kernelWidth === 3 &&
  s.strideH === 1 &&
  s.strideW === 1 &&
  s.dilationH === 1 &&
  s.dilationW === 1 &&
  s.channels >= LEAST_CHANNELS &&
  s.features >= LEAST_CHANNELS &&
  s.outHeight >= LEAST_PLANE &&
  s.outWidth >= LEAST_PLANE &&
  s.batch * tilesOf(s, side) >= LEAST_TILES

/** Whether F(2,3) does. */
export const takesWinograd = (s: ConvolutionSizes): boolean => takes(F23, s)
/** Whether F(4,3) does. Its transforms take longer, which pays where it has at most three quarters of the other's products. */
export const takesFastWinograd = (sizes: ConvolutionSizes): boolean =>
  takes(F43, sizes) && 4 * F43.products * tilesOf(sizes, F43.side) <= 3 * F23.products * tilesOf(sizes, F23.side)

/** The sizes that follow from a problem. */
export interface WinogradSpec {
  readonly algorithm: WinogradAlgorithm
  readonly problem: ConvolutionProblem
  /** Tiles along y and x. */
  readonly tileRows: number
  readonly tileColumns: number
}

export interface WinogradTile {
  /** Tiles by features of the products' register tile. */
  readonly rows: number
  readonly columns: number
  /** The limits for the transformed windows of all images, the second as a part of the transformed weights; where they take more, the loop over blocks is outside. */
  readonly windowBytes: number
  readonly windowsOfWeights: number
  /** The limit for the transformed weights of a group of features; a group has at least one panel. */
  readonly weightBytes: number
  /** The limit for the transformed windows and products of a block; a block has at least one row of tiles. */
  readonly blockBytes: number
}

/** A schedule of convolutions by one of Winograd’s algorithms. */
export type WinogradSchedule = Schedule<ConvolutionProblem, WinogradSpec, WinogradTile> & { readonly algorithm: WinogradAlgorithm }
