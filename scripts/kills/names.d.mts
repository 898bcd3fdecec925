export declare const TRAININGS: readonly string[]
