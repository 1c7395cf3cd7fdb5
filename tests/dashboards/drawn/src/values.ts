// What is in data frames, as far as more than one room asks.
import { FieldType, type DataFrame } from '@grafana/data';

/** Whether some field that is drawn has a value. */
export function hasValue(frames: DataFrame[]): boolean {
  return frames.some((frame) =>
    frame.fields.some(
      (field) => field.type !== FieldType.time && field.values.some((value) => value !== null && value !== undefined)
    )
  );
}
