{{/* Names, labels and what more than one object has in common. */}}

{{- define "firsttoken.name" -}}
{{- if contains "firsttoken" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-firsttoken" (.Release.Name | trunc 29 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "firsttoken.labels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: firsttoken
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "firsttoken.selector" -}}
app.kubernetes.io/name: firsttoken
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "firsttoken.tokenSecret" -}}
{{- .Values.tokenSecret | default (printf "%s-token" (include "firsttoken.name" .)) -}}
{{- end -}}

{{- define "firsttoken.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "firsttoken.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "firsttoken.pullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}
