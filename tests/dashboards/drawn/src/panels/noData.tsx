// What a panel shows in place of figures, in the words of the dashboard.
import type { FieldConfigSource } from '@grafana/data';

export function NoData({ fieldConfig }: { fieldConfig: FieldConfigSource }) {
  const middle = { display: 'flex', alignItems: 'center', justifyContent: 'center', height: '100%' } as const;
  return <div style={middle}>{fieldConfig.defaults.noValue ?? 'No data'}</div>;
}
